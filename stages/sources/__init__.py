"""The data sources, and the checkpoints that models start from: a stage each."""
