"""Perplexity on held-out text."""
