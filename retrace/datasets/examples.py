"""Examples of classification tasks.

Those of SST-2 are part of the data source, tab-separated as in GLUE. Those of any other task are in
data/classification/<task>, where a stage of data/dvc.yaml writes them together with the class names.
"""

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from retrace.core.errors import InputError
from retrace.core.files import numbered_lines, read_json, write_json, write_text
from retrace.core.paths import sentences_path, task_folder
from retrace.core.settings import DATA_PARAMS
from retrace.datasets.text import cell, read_table

SST2, SENTIMENTS = "sst2", ("negative", "positive")
CLASSES = "classes.json"
LABELS = ("0", "1")  # of SST-2: negative, positive
UNLABELLED = "; GLUE publishes its test set without labels, so it cannot be scored"
MOST_DIGITS = 18  # of a label that counts as a number; Python reads at most 4300
_NUMBER = re.compile(rf"-?[0-9]{{1,{MOST_DIGITS}}}")


@dataclass(frozen=True)
class Example:
    """A text or a pair of texts, and the number of its class."""

    text: str
    pair: str | None
    label: int


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


def read_classes(source: Path, task: str) -> tuple[str, ...]:
    """The names of the task's classes, in the order of their numbers.

    Raises InputError where the task's data has not been prepared.
    """
    if task == SST2:
        return SENTIMENTS
    path = task_folder(task, source.parent) / CLASSES
    if not path.is_file():
        raise InputError(
            f"{path}: no such file; is {task} under 'classification' or 'hub.classification' in {DATA_PARAMS}, "
            "and has its stage run?"
        )
    return tuple(read_json(path))


def read_examples(source: Path, task: str, part: str) -> list[Example]:
    """The examples of `train`, `dev` or, if the task has one, `test`, in the order of the file.

    Raises InputError where the file is missing or, for SST-2, a row is malformed.
    """
    path = sentences_path(source, part, task)
    if path.suffix == ".tsv":
        return read_sentences(path)
    return [Example(**json.loads(line)) for _, line in numbered_lines(path)]


def write_task(folder: Path, classes: Sequence[str], parts: Mapping[str, Sequence[Example]]) -> None:
    """Write the files that `read_classes` and `read_examples` read."""
    write_json(folder / CLASSES, list(classes))
    for part, examples in parts.items():
        lines = (json.dumps(asdict(example), ensure_ascii=False) for example in examples)
        write_text(folder / f"{part}.jsonl", "".join(f"{line}\n" for line in lines))


def class_order(names: Iterable[str]) -> list[str]:
    """The distinct names, sorted numerically if all are whole numbers, else alphabetically."""
    every = sorted(set(names))
    return sorted(every, key=int) if all(_NUMBER.fullmatch(name) for name in every) else every
