"""Retrace's library: one package per subject, and packages are what the stages of dvc.yaml depend on."""
