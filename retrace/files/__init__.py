"""Your own files: as the data source and as further tasks, in several formats; the hub's tasks pass the same checks."""
