"""What a change does to the results: two revisions side by side, with a verdict."""
