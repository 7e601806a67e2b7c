"""The report: a page in HTML and Markdown."""
