"""Your own files and tasks: formats, splits, checks."""
