"""Learning curves as comma-separated text, which DVC plots."""

import csv
import io
from typing import Any


def as_csv(rows: list[dict[str, Any]]) -> str:
    """One line a row, columns as the first row has them; nothing where a value is absent."""
    text = io.StringIO()
    writer = csv.DictWriter(text, list(rows[0]), extrasaction="ignore", lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    return text.getvalue()
