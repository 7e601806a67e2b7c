"""Models for others: bundle, card, loading back."""
