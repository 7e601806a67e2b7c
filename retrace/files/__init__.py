"""Your own files as a data source: where they are and what they are called once copied."""
