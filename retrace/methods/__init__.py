"""Fine-tuning methods, one file each."""
