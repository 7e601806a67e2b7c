"""Seeded programs that damage, starve and misfeed the pipeline and count how it copes; `make torture`."""
