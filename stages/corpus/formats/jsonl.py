"""A json object a line."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from stages.corpus.lines import numbered_lines
from stages.harness.errors import InputError


def read_records(path: Path) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield each object's place and values by key.

    Raises InputError naming file and line where one is no json object.
    """
    for number, line in numbered_lines(path):
        if not line.strip():
            continue
        try:
            record = json.loads(line)
        except json.JSONDecodeError as error:
            raise InputError(f"{path}:{number}: not json: {error.msg} at column {error.colno}") from None
        if not isinstance(record, dict):
            raise InputError(f"{path}:{number}: not a json object")
        yield f"{path}:{number}", record
