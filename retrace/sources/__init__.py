"""Further classification tasks: your own files in several formats, or data sets of the hub."""
