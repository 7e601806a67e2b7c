"""The generator of the embedded corpus."""
