"""Labelled sentences in GLUE's tab-separated format, columns found by name."""

from dataclasses import dataclass
from pathlib import Path

from retrace.core.errors import InputError
from retrace.datasets.text import numbered_lines

LABELS = ("0", "1")  # SST-2: negative, positive
COLUMNS = ("sentence", "label")
UNLABELLED = "; GLUE gives out its test set without labels, so that it cannot be scored"


@dataclass(frozen=True)
class Sentence:
    """A sentence and its class, 0 or 1."""

    text: str
    label: int


def read_sentences(path: Path) -> list[Sentence]:
    """Read a file whose first line names the columns, `sentence` and `label` among them.

    Raises InputError naming the file and line where the header or a row is wrong.
    """
    lines = numbered_lines(path)
    header = next(lines)[1].split("\t")
    missing = [column for column in COLUMNS if column not in header]
    if missing:
        hint = UNLABELLED if missing == ["label"] and path.name == "test.tsv" else ""
        raise InputError(f"{path}:1: no column {missing[0]!r}; the header has: {', '.join(header)}{hint}")
    twice = [column for column in COLUMNS if header.count(column) > 1]
    if twice:
        raise InputError(f"{path}:1: the header has the column {twice[0]!r} twice")
    text, label = (header.index(column) for column in COLUMNS)
    sentences = [_row(path, number, line.split("\t"), header, text, label) for number, line in lines if line.strip()]
    if not sentences:
        raise InputError(f"{path}: no row below the header")
    return sentences


def _row(path: Path, number: int, cells: list[str], header: list[str], text: int, label: int) -> Sentence:
    if len(cells) != len(header):
        raise InputError(f"{path}:{number}: {len(cells)} columns where the header has {len(header)}")
    if cells[label] not in LABELS:
        raise InputError(f"{path}:{number}: label {cells[label]!r} is not allowed; expected {' or '.join(LABELS)}")
    if not cells[text].strip():
        raise InputError(f"{path}:{number}: the sentence is empty")
    return Sentence(cells[text].strip(), int(cells[label]))
