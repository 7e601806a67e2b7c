"""Retrace's library: a folder is a room, and a room is what a stage of dvc.yaml depends on."""
