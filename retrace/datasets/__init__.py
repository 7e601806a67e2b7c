"""What a data source writes, and its readers: running text, classification tasks, questions; data cards."""
