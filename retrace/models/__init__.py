"""Models from transformers: sizes, language models, heads."""
