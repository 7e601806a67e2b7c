"""Pretraining: its settings, and the model, objective and validation of a run."""
