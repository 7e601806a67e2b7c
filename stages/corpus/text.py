"""Running text in WikiText's format, or plain: documents one after the other, never all in memory."""

import re
from collections.abc import Iterator
from pathlib import Path

from stages.corpus.lines import numbered_lines
from stages.harness.errors import InputError

PARTS = ("train", "valid", "test")
UNKNOWN = "<unk>"  # WikiText's mark for a word that it left out

_TITLE = re.compile(r"^ = (?!= ).+ = ?$")  # a section's heading has two signs or more


def text_path(folder: Path, part: str) -> Path:
    """The file of one part in WikiText's naming."""
    return folder / f"wiki.{part}.tokens"


def read_documents(path: Path) -> Iterator[str]:
    """Yield documents: articles where the file has WikiText's ` = Title = ` lines, else paragraphs.

    A paragraph ends at an empty line. Raises InputError where the file has no text at all.
    """
    lines: list[str] = []
    articles = found = False
    for _, line in numbered_lines(path):
        title = bool(_TITLE.match(line))
        articles = articles or title
        ends = title if articles else not line.strip()
        if ends and any(lines):
            found = True
            yield "\n".join(lines)
            lines = []
        if line.strip():
            lines.append(line.strip())
    if lines:
        found = True
        yield "\n".join(lines)
    if not found:
        raise InputError(f"{path}: there is no text in it")


def count_words(text: str) -> int:
    """Words as the file has them, separated by white space."""
    return len(text.split())
