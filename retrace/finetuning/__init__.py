"""One run of the grid: a task, a method, a seed."""
