"""Learning curves as comma-separated text, which DVC plots."""

from typing import Any


def as_csv(rows: list[dict[str, Any]]) -> str:
    """One line a row, columns as the first row has them; nothing where a value is absent."""
    columns = list(rows[0])
    lines = [",".join("" if row.get(column) is None else str(row[column]) for column in columns) for row in rows]
    return "\n".join([",".join(columns), *lines]) + "\n"
