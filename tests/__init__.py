"""Tests, and what they share; a package, as other packages ship a `tests` too."""
