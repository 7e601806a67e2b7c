"""Published figures and how Retrace's compare with them; records of fixed budgets."""
