"""Comma-separated values, cells quoted where they need it (RFC 4180); the first line names the columns."""

import csv
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from retrace.sources.delimited import read_delimited


def read_records(path: Path) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield each row's place and cells by column."""
    yield from read_delimited(path, ",", csv.QUOTE_MINIMAL)
