"""What fine-tuning hands to evaluation: the grid of runs and their predictions."""
