"""Text to token ids: tokenizers, special tokens, token blocks."""
