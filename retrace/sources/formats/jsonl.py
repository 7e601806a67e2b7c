"""A json object a line."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from retrace.core.errors import InputError
from retrace.datasets.text import numbered_lines, parse_json


def read_records(path: Path) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield each object's place and values by key.

    Raises InputError naming file and line where one is no json object.
    """
    for number, line in numbered_lines(path):
        if not line.strip():
            continue
        record = parse_json(line, path, number)
        if not isinstance(record, dict):
            raise InputError(f"{path}:{number}: not a json object")
        yield f"{path}:{number}", record
