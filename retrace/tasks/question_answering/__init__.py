"""Question answering on passages, extractive and generative."""
