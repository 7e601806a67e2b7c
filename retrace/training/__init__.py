"""The training loop, optimizers, checkpoints, throughput and FLOPs, progress."""
