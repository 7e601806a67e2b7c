"""Metrics, baselines and flags from predictions."""
