"""Published figures beside measured ones."""
