"""The Hugging Face Hub: session, pinned repositories, data sets, upload."""
