"""Metrics, one file each."""
