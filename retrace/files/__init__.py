"""Your own files: as the data source and as further tasks, in several formats; tasks of the hub are checked alike."""
