"""Retrace's library: a folder is a room, and a room is what a stage of dvc.yaml depends on."""

import os

# OpenMP's threads wait for each other by spinning, 300,000 times by default, which keeps a core from another process
# that has work for it. It is read when PyTorch is imported.
os.environ.setdefault("GOMP_SPINCOUNT", "10000")
