"""Examples of classification tasks, and their classes.

A task lies in data/classification/<task>, where a stage of data/dvc.yaml writes json lines of text, second text and
class number, and the names of the classes.
"""

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from retrace.core.errors import InputError
from retrace.core.files import numbered_lines, parse_json, read_json, write_json, write_text
from retrace.core.paths import examples_path, splits_of
from retrace.core.settings import DATA_PARAMS
from retrace.datasets.text import cell, read_table

SENTIMENTS = ("negative", "positive")  # of SST-2, by number
CLASSES = "classes.json"
LABELS = ("0", "1")  # of SST-2
UNLABELLED = "; GLUE publishes its test set without labels, so it cannot be scored"
MOST_DIGITS = 18  # of a label that counts as a number; Python reads at most 4300
_NUMBER = re.compile(rf"-?[0-9]{{1,{MOST_DIGITS}}}")


@dataclass(frozen=True)
class Example:
    """A text or a pair of texts, and the number of its class."""

    text: str
    pair: str | None
    label: int


@dataclass(frozen=True)
class TaskData:
    """A classification task, read and checked; `parts` are train, dev and perhaps test."""

    classes: tuple[str, ...]
    parts: Mapping[str, Sequence[Example]]
    dropped: int = 0  # rows whose label is left out
    notes: tuple[str, ...] = ()  # how labels were interpreted, where that is not obvious


def read_sentences(path: Path) -> list[Example]:
    """Read a tab-separated file with the columns `sentence` and `label`.

    Raises InputError naming the file and line of a malformed row.
    """
    sentences = []
    hint = UNLABELLED if path.name == "test.tsv" else ""
    for where, cells in read_table(path):
        text, label = cell(where, cells, "sentence").strip(), cell(where, cells, "label", hint)
        if label not in LABELS:
            raise InputError(f"{where}: label {label!r} is not allowed; expected {' or '.join(LABELS)}")
        if not text:
            raise InputError(f"{where}: the sentence is empty")
        sentences.append(Example(text, None, int(label)))
    if not sentences:
        raise InputError(f"{path}: no row below the header")
    return sentences


def read_classes(folder: Path) -> tuple[str, ...]:
    """The names of the classes of the task in `folder`, in the order of their numbers.

    Raises InputError if the task's data has not been prepared.
    """
    path = folder / CLASSES
    if not path.is_file():
        raise InputError(f"{path}: no such file; run dvc repro; {DATA_PARAMS} defines every task but sst2")
    return tuple(read_json(path))


def read_examples(folder: Path, part: str) -> list[Example]:
    """The examples of `train`, `dev` or, if the task has one, `test`, in the order of the file.

    Raises InputError if the file is missing.
    """
    path = examples_path(folder, part)
    return [Example(**parse_json(line, path, number)) for number, line in numbered_lines(path)]


def read_task(folder: Path) -> TaskData:
    """The whole task in `folder`."""
    return TaskData(read_classes(folder), {part: read_examples(folder, part) for part in splits_of(folder)})


def write_task(folder: Path, data: TaskData) -> None:
    """Write the files that `read_classes` and `read_examples` read."""
    write_json(folder / CLASSES, list(data.classes))
    for part, examples in data.parts.items():
        lines = (json.dumps(vars(example), ensure_ascii=False) for example in examples)
        write_text(examples_path(folder, part), "".join(f"{line}\n" for line in lines))


def class_order(names: Iterable[str]) -> list[str]:
    """The distinct names, sorted numerically if all are whole numbers, else alphabetically."""
    every = sorted(set(names))
    return sorted(every, key=int) if all(_NUMBER.fullmatch(name) for name in every) else every
