"""What a change does to the results: two revisions beside each other, with a verdict."""
