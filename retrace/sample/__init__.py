"""The generator of the sample corpus."""
