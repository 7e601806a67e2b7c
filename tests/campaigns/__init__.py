"""Seeded programs that damage, starve and misfeed the pipeline and count what it makes of it; `make torture`."""
