"""Examples of classification tasks, the same whatever they were read from.

SST-2's are part of the data source, tab-separated as in GLUE. Those of another task were brought into
data/classification/<task> by a stage of data/dvc.yaml, with the names of their classes.
"""

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from retrace.core.errors import InputError
from retrace.core.files import numbered_lines, read_json, write_json, write_text
from retrace.core.paths import sentences_path, task_folder
from retrace.datasets.text import read_table

LABELS = ("0", "1")  # SST-2: negative, positive
COLUMNS = ("sentence", "label")
UNLABELLED = "; GLUE gives out its test set without labels, so that it cannot be scored"


@dataclass(frozen=True)
class Example:
    """A text, or two that belong together, and the number of its class."""

    text: str
    pair: str | None
    label: int


def read_sentences(path: Path) -> list[Example]:
    """Read a tab-separated file whose header has the columns `sentence` and `label`.

    Raises InputError naming the file and line where a row is wrong.
    """
    sentences = []
    for where, cells in read_table(path):
        missing = [column for column in COLUMNS if column not in cells]
        if missing:
            hint = UNLABELLED if missing == ["label"] and path.name == "test.tsv" else ""
            raise InputError(f"{where}: no column {missing[0]!r}; the header has: {', '.join(cells)}{hint}")
        text, label = cells["sentence"].strip(), cells["label"]
        if label not in LABELS:
            raise InputError(f"{where}: label {label!r} is not allowed; expected {' or '.join(LABELS)}")
        if not text:
            raise InputError(f"{where}: the sentence is empty")
        sentences.append(Example(text, None, int(label)))
    if not sentences:
        raise InputError(f"{path}: no row below the header")
    return sentences


SST2, SENTIMENTS = "sst2", ("negative", "positive")
CLASSES = "classes.json"


def read_classes(source: Path, task: str) -> tuple[str, ...]:
    """The names of the task's classes, by number.

    Raises InputError where the task's data was not prepared.
    """
    if task == SST2:
        return SENTIMENTS
    path = task_folder(task, source.parent) / CLASSES
    if not path.is_file():
        raise InputError(
            f"{path}: no such file; is {task} under 'classification' or 'hub.classification' in params.yaml, "
            "and was it read?"
        )
    return tuple(read_json(path))


def read_examples(source: Path, task: str, part: str) -> list[Example]:
    """The examples of `train`, `dev` or, where the task has one, `test`, in the order of the data.

    Raises InputError where the file is missing or, for SST-2, a row is wrong.
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


_NUMBER = re.compile(r"-?[0-9]+")


def class_order(names: Iterable[str]) -> list[str]:
    """All classes, sorted by number where all are whole numbers, else alphabetically."""
    every = sorted(set(names))
    return sorted(every, key=int) if all(_NUMBER.fullmatch(name) for name in every) else every
