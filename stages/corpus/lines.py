"""Text files read line by line, and json, with the place named where one cannot be read."""

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from stages.harness.errors import InputError

_ESCAPED_HALF = re.compile(r"\\u[dD][89a-fA-F]")  # of a character beyond 16 bits, if the other half stands beside it


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


def parse_json(text: str, path: Path, line: int = 1) -> Any:
    """What the json in a file says that starts on this line.

    Raises InputError naming file and line where it is not json or has a character that no text can hold.
    """
    try:
        found = json.loads(text)
        if _ESCAPED_HALF.search(text):
            json.dumps(found, ensure_ascii=False).encode()
    except json.JSONDecodeError as error:
        raise InputError(f"{path}:{line + error.lineno - 1}: not json: {error.msg} at column {error.colno}") from None
    except RecursionError:
        raise InputError(f"{path}:{line}: not json: nested too deeply") from None
    except UnicodeEncodeError as error:
        half = ascii(error.object[error.start])
        line += text.count("\n", 0, text.lower().find(half.strip("'")))
        raise InputError(f"{path}:{line}: {half} is half of a character; save the file as UTF-8") from None
    return found
