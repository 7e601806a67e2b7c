"""The training loop, its optimizers, checkpoints, progress and signals."""
