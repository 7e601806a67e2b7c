"""Apache Parquet."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from retrace.core.errors import InputError


def read_records(path: Path) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield each row's place and cells by column.

    Raises InputError where the file is missing or not parquet.
    """
    if not path.is_file():
        raise InputError(f"{path}: no such file")
    try:
        rows = pq.read_table(path).to_pylist()
    except (pa.ArrowException, OSError) as error:
        raise InputError(f"{path}: not parquet: {str(error).splitlines()[0]}") from None
    for number, row in enumerate(rows, start=1):
        yield f"{path}: row {number}", row
