"""Tables as lines of text: a header that names the columns, then a row a line."""

import csv
from collections.abc import Iterator
from pathlib import Path
from typing import Literal

from retrace.core.errors import InputError
from retrace.datasets.text import numbered_lines


def read_delimited(path: Path, delimiter: str, quoting: Literal[0, 3]) -> Iterator[tuple[str, dict[str, str]]]:
    """Yield each row's file and line, and its cells by column; `quoting` is one of the csv module's.

    Raises InputError where the header names a column twice or a row has not as many cells as the header.
    """
    reader = csv.reader((f"{line}\n" for _, line in numbered_lines(path)), delimiter=delimiter, quoting=quoting,
                        strict=True)  # fmt: skip
    header: list[str] = []
    while True:
        where = f"{path}:{reader.line_num + 1}"  # where the row starts: a quoted cell may go on over several lines
        try:
            cells = next(reader)
        except StopIteration:
            return
        except csv.Error as error:
            raise InputError(f"{where}: not a row: {error}") from None
        if not header:
            header = cells
            twice = [name for name in header if header.count(name) > 1]
            if twice:
                raise InputError(f"{where}: the header has the column {twice[0]!r} twice")
        elif cells:
            if len(cells) != len(header):
                raise InputError(f"{where}: {len(cells)} columns where the header has {len(header)}")
            yield where, dict(zip(header, cells, strict=True))
