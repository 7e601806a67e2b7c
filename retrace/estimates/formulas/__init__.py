"""Parameter counts in closed form, one file for each family."""
