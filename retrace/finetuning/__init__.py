"""One fine-tuning run: a task, a method, a seed."""
