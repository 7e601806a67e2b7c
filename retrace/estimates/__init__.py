"""Parameters and memory before training."""
