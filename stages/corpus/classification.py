"""Classification tasks of the user's own: files of any format, and what to make of them.

A format is a file of stages/corpus/formats, called as the files of that format end.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from stages.corpus.examples import Example
from stages.corpus.split import held_out_split
from stages.harness.errors import InputError
from stages.harness.plugins import load_plugin
from stages.harness.settings import build, require

FORMATS = "stages.corpus.formats"
SECTION = "classification"  # of params.yaml
# A task's name is also one of a profile's sections and of the folders of models.
TAKEN = ("sst2", "squad", "tokenizer", "tokens", "model", "pretrain", "pretrained", "perplexity")
_NAME = re.compile(r"[a-z0-9][a-z0-9_-]*")


@dataclass(frozen=True)
class ClassificationSettings:
    """Where a task's files are, and which of their columns hold what."""

    folder: str  # relative to the project
    train: str  # file names within folder
    dev: str | None = None
    test: str | None = None
    split: float | None = None  # share of train that is trained on where there is no dev; the rest is dev
    split_seed: int = 1  # draws it
    format: str | None = None  # a file of stages/corpus/formats; as the files end where absent
    text: str | tuple[str, ...] = "text"  # the column, or several that are joined
    pair: str | None = None  # the column of the second text, of a task on pairs
    label: str = "label"
    classes: tuple[str, ...] | None = None  # names, by number; as the training data has them, sorted, where absent
    drop: tuple[str, ...] = ()  # labels that are left out

    def __post_init__(self) -> None:
        require((self.dev is None) != (self.split is None), "split", self.split, "expected either dev or split")
        require(self.split is None or 0 < self.split < 1, "split", self.split, "expected between 0 and 1")
        require(bool(self.text), "text", self.text, "expected at least one column")
        classes = self.classes
        require(
            classes is None or len(set(classes)) == len(classes) > 1,
            "classes",
            classes,
            "expected two or more, each once",
        )
        both = set(classes or ()) & set(self.drop)
        require(not both, "drop", list(self.drop), f"{min(both, default='')!r} is one of classes")


@dataclass(frozen=True)
class Labelled:
    """A row of a file, its label as it is there."""

    where: str  # file and line
    text: str
    pair: str | None
    label: str


@dataclass(frozen=True)
class TaskData:
    """A task, read and checked."""

    classes: tuple[str, ...]
    parts: dict[str, list[Example]]
    dropped: int  # rows of a label that is left out


def task_settings(params: Mapping[str, Any], task: str) -> ClassificationSettings:
    """The settings of an entry under `classification` in params.yaml.

    Raises InputError where they or its name are wrong.
    """
    if not _NAME.fullmatch(task) or task in TAKEN:
        raise InputError(
            f"params.yaml: {SECTION}.{task}: the name is not allowed; "
            f"expected a-z, 0-9, _ and -, and none of {', '.join(TAKEN)}"
        )
    return build(ClassificationSettings, params, f"{SECTION}.{task}")


def read_task(settings: ClassificationSettings, key: str) -> TaskData:
    """Read all files of a task; `key` is its entry in params.yaml.

    Raises InputError naming the file and row where something is wrong.
    """
    names = {"train": settings.train, "dev": settings.dev, "test": settings.test}
    paths = {part: Path(settings.folder) / name for part, name in names.items() if name is not None}
    rows = {part: list(_read_rows(path, settings, key)) for part, path in paths.items()}
    labels = {row.label for part in rows.values() for row in part}
    for label in settings.drop:
        if label not in labels:
            raise InputError(f"params.yaml: {key}.drop: no row has the label {label!r}")
    kept = {part: [row for row in found if row.label not in settings.drop] for part, found in rows.items()}
    for part, path in paths.items():
        if not kept[part]:
            raise InputError(f"{path}: no example in it")
    classes = settings.classes or _sorted_labels(kept["train"])
    if len(classes) < 2:
        raise InputError(f"{paths['train']}: every label is {', '.join(classes)}; expected two classes or more")
    if settings.split is not None:
        kept["train"], kept["dev"] = held_out_split(
            kept["train"], settings.split, settings.split_seed, str(paths["train"])
        )
    parts = {part: [_example(row, classes) for row in found] for part, found in kept.items()}
    return TaskData(classes, parts, sum(map(len, rows.values())) - sum(map(len, kept.values())))


def _read_rows(path: Path, settings: ClassificationSettings, key: str) -> Iterator[Labelled]:
    name = settings.format or path.suffix.removeprefix(".")
    columns = (settings.text,) if isinstance(settings.text, str) else settings.text
    for where, record in load_plugin(FORMATS, name, f"{key}.format").read_records(path):
        text = " ".join(filter(None, (_text(where, record, column) for column in columns)))
        pair = None if settings.pair is None else _text(where, record, settings.pair)
        label = _cell(where, record, settings.label)
        if not isinstance(label, str | int) or not str(label).strip():
            raise InputError(f"{where}: {settings.label} {label!r} is not allowed; expected text or a whole number")
        for column, value in (("text", text), (settings.pair, pair)):
            if value == "":
                raise InputError(f"{where}: the {column} is empty")
        yield Labelled(where, text, pair, str(label).strip())


def _cell(where: str, record: Mapping[str, Any], column: str) -> Any:
    if column not in record:
        raise InputError(f"{where}: no {column!r}; there is: {', '.join(record)}")
    return record[column]


def _text(where: str, record: Mapping[str, Any], column: str) -> str:
    value = _cell(where, record, column)
    if not isinstance(value, str):
        raise InputError(f"{where}: {column} {value!r} is not allowed; expected text")
    return value.strip()


def _sorted_labels(rows: Sequence[Labelled]) -> tuple[str, ...]:
    """Every label once, in the order of numbers where all are numbers."""
    labels = {row.label for row in rows}
    return tuple(sorted(labels, key=int if all(label.isdecimal() for label in labels) else None))


def _example(row: Labelled, classes: Sequence[str]) -> Example:
    """The row with its label as a number, which it may be already where the classes' names are none."""
    numbered = row.label.isdecimal() and not any(name.isdecimal() for name in classes)
    if numbered and int(row.label) < len(classes):
        return Example(row.text, row.pair, int(row.label))
    if row.label not in classes:
        raise InputError(f"{row.where}: label {row.label!r} is not allowed; expected one of {', '.join(classes)}")
    return Example(row.text, row.pair, classes.index(row.label))
