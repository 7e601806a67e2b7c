"""Text files read line by line, with the place named where one cannot be read."""

from collections.abc import Iterator
from pathlib import Path

from stages.harness.errors import InputError


def numbered_lines(path: Path) -> Iterator[tuple[int, str]]:
    """Line numbers from 1 and lines without their end, decoded as UTF-8 one at a time.

    Raises InputError where the file is missing or empty, or a line is not UTF-8.
    """
    if not path.is_file():
        raise InputError(f"{path}: no such file")
    if path.stat().st_size == 0:
        raise InputError(f"{path}: the file is empty")
    with path.open("rb") as file:
        for number, raw in enumerate(file, start=1):
            try:
                line = raw.decode("utf-8-sig" if number == 1 else "utf-8")
            except UnicodeDecodeError as error:
                byte = raw[error.start]
                raise InputError(f"{path}:{number}: byte 0x{byte:02x} is not UTF-8; save the file as UTF-8") from None
            yield number, line.rstrip("\r\n")
