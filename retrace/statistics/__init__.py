"""Bootstrap, confidence intervals, comparisons, scales."""
