"""The Hugging Face Hub: pinned repositories, checkpoints, data sets, upload."""
