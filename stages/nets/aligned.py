"""Weights files in which the matrices begin at multiples of 64 bytes.

transformers computes on weights where they lie in the mapped file, and where a matrix begins in memory decides how its
products are rounded. A file laid out like this gives, bit for bit, what the weights gave in memory of their own.
"""

import json
from pathlib import Path
from typing import Any

from stages.harness.records import written_file

ALIGNMENT = 64  # bytes, as torch allocates


def align(path: Path) -> None:
    """Lay out a safetensors file anew: what is a multiple of 64 bytes long comes first, the rest after it.

    The format is eight bytes with the header's length, the header as json, padded with spaces, and the values.
    """
    with path.open("rb") as file:
        size = int.from_bytes(file.read(8), "little")
        header = json.loads(file.read(size))
        with written_file(path) as aside, aside.open("wb") as laid_out:
            text, spans = _layout(header)
            laid_out.write(len(text).to_bytes(8, "little") + text)
            for first, last in spans:
                file.seek(8 + size + first)
                laid_out.write(file.read(last - first))


def _layout(header: dict[str, Any]) -> tuple[bytes, list[tuple[int, int]]]:
    """The new header, and in its order where the values are now, in bytes from the end of the old one."""
    metadata = {"__metadata__": header.pop("__metadata__")} if "__metadata__" in header else {}
    names = sorted(header, key=lambda name: (_size(header[name]) % ALIGNMENT > 0, name))
    spans, offset = [], 0
    for name in names:
        first, last = header[name]["data_offsets"]
        spans.append((first, last))
        header[name]["data_offsets"] = [offset, offset := offset + last - first]
    text = json.dumps(metadata | {name: header[name] for name in names}, separators=(",", ":")).encode()
    return text + b" " * (-(8 + len(text)) % ALIGNMENT), spans


def _size(entry: dict[str, list[int]]) -> int:
    first, last = entry["data_offsets"]
    return last - first
