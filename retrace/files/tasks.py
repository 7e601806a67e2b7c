"""Further tasks: classification in files of any format or rows from elsewhere, and questions in SQuAD's format."""

import re
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from retrace.core.errors import InputError
from retrace.core.files import atomic_folder, write_json
from retrace.core.paths import QUESTIONS, task_folder
from retrace.core.settings import DATA_PARAMS
from retrace.datasets.card import count_questions
from retrace.datasets.examples import Example, class_order, write_task
from retrace.datasets.settings import TaskSettings
from retrace.datasets.splits import (
    count_given_away,
    count_shared,
    groups_of,
    held_out_split,
    keys_of,
    split_questions,
    words_of,
)
from retrace.datasets.text import copied
from retrace.files.formats import cell, label_of, read_records
from retrace.files.settings import ClassificationSettings, QuestionsSettings

_WHOLE = re.compile(r"-?[0-9]+\.0+")  # as tables with gaps write whole numbers
Records = Iterable[tuple[str, Mapping[str, Any]]]  # rows: their place and their cells by column


@dataclass(frozen=True)
class Table:
    """A part of a task, as it is read."""

    name: str  # for messages
    records: Records


@dataclass(frozen=True)
class LabelledRow:
    """A row, its label as it is there."""

    where: str  # file and line, or data set and row
    text: str
    pair: str | None
    label: str


@dataclass(frozen=True)
class TaskData:
    """A task, read and checked."""

    classes: tuple[str, ...]
    parts: dict[str, list[Example]]
    dropped: int  # rows of a label that is left out
    notes: tuple[str, ...] = ()  # how labels were understood, where that is not plain


def read_files(settings: ClassificationSettings, key: str) -> TaskData:
    """Read all files of a task; `key` is its entry in data/params.yaml.

    Raises InputError naming the file and row where something is wrong.
    """
    folder = Path(settings.folder)
    tables = {
        part: Table(str(folder / name), read_records(folder / name, settings.format))
        for part, name in settings.parts.items()
    }
    return read_task(settings, key, tables)


def check_files(settings: ClassificationSettings | QuestionsSettings, key: str) -> None:
    """Raise an InputError that says what to put where, unless all files of a task are there."""
    folder, names = Path(settings.folder), list(dict.fromkeys(settings.parts.values()))
    missing = [name for name in names if not (folder / name).is_file()]
    if missing:
        what = f"{folder / missing[0]}: no such file" if folder.is_dir() else f"{str(folder)!r} is not a folder"
        where = f", published at {settings.published}" if settings.published else ""
        raise InputError(f"{DATA_PARAMS}: {key}: {what}; put {', '.join(names)} into {folder}{where}")


def read_task(settings: TaskSettings, key: str, tables: Mapping[str, Table]) -> TaskData:
    """Make examples of a task's tables, by part; `key` is its entry in data/params.yaml.

    Raises InputError naming the table and row where something is wrong.
    """
    rows = {part: list(_read_rows(table.records, settings)) for part, table in tables.items()}
    labels = {row.label for part in rows.values() for row in part}
    for label in settings.drop:
        if label not in labels:
            raise InputError(f"{DATA_PARAMS}: {key}.drop: no row has the label {label!r}")
    kept = {part: [row for row in found if row.label not in settings.drop] for part, found in rows.items()}
    for part, table in tables.items():
        if not kept[part]:
            raise InputError(f"{table.name}: no example in it")
    train = tables["train"].name
    classes = settings.classes or tuple(class_order(row.label for row in kept["train"]))
    if len(classes) < 2:
        raise InputError(f"{train}: every label is {', '.join(classes)}; expected two classes or more")
    if settings.split is not None:
        groups = groups_of([words_of(row.text) for row in kept["train"]]) if settings.split_by == "text" else None
        kept["train"], kept["dev"] = held_out_split(kept["train"], settings.split, settings.split_seed, train, groups)
    numbers, first = _class_numbers({row.label for found in kept.values() for row in found}, classes, key)
    notes = (f"labels are numbered from 1: 1 is {classes[0]}, {len(classes)} is {classes[-1]}",) if first else ()
    parts = {part: [_example(row, numbers, classes) for row in found] for part, found in kept.items()}
    return TaskData(classes, parts, sum(map(len, rows.values())) - sum(map(len, kept.values())), notes)


def _read_rows(records: Records, settings: TaskSettings) -> Iterator[LabelledRow]:
    columns = (settings.text,) if isinstance(settings.text, str) else settings.text
    for where, record in records:
        text = " ".join(filter(None, (_text(where, record, column) for column in columns)))
        pair = None if settings.pair is None else _text(where, record, settings.pair)
        label = label_of(where, record, settings.label)
        if _WHOLE.fullmatch(label) and label not in (*(settings.classes or ()), *settings.drop):
            label = label.partition(".")[0]
        for column, value in (("text", text), (settings.pair, pair)):
            if value == "":
                raise InputError(f"{where}: the {column} is empty")
        yield LabelledRow(where, text, pair, label)


def _text(where: str, record: Mapping[str, Any], column: str) -> str:
    value = cell(where, record, column)
    if not isinstance(value, str):
        raise InputError(f"{where}: {column} {value!r} is not allowed; expected text")
    return value.strip()


def _class_numbers(labels: Collection[str], classes: Sequence[str], key: str) -> tuple[dict[str, int], int]:
    """The class by its name and, where names are no numbers, by a number from 0 or 1 on; and which of the two.

    Raises InputError where the labels do not tell which.
    """
    by_name = {name: number for number, name in enumerate(classes)}
    numbers = {int(label) for label in labels if label.isdecimal()}
    if any(name.isdecimal() for name in classes):
        return by_name, 0
    first = 1 if numbers and 0 not in numbers else 0
    if first and max(numbers) < len(classes):
        raise InputError(
            f"{DATA_PARAMS}: {key}.classes: labels from {min(numbers)} to {max(numbers)} do not tell whether the first "
            f"of {len(classes)} names is that of 0 or of 1; expected a row of 0 or of {len(classes)}, or names for "
            "labels"
        )
    return by_name | {str(first + number): number for number in range(len(classes))}, first


def _example(row: LabelledRow, numbers: Mapping[str, int], classes: Sequence[str]) -> Example:
    if row.label not in numbers:
        raise InputError(f"{row.where}: label {row.label!r} is not allowed; expected one of {', '.join(classes)}")
    return Example(row.text, row.pair, numbers[row.label])


def make_task_card(data: TaskData) -> dict[str, Any]:
    """Counts, and what a user should know of them, one line each.

    `shared` counts the later split's examples, `given_away` those whose text is in one of the training data or half so.
    """
    parts = {}
    for part, examples in data.parts.items():
        counts = Counter(example.label for example in examples)
        by_class = {name: counts[number] for number, name in enumerate(data.classes)}
        parts[part] = {"examples": len(examples), "classes": by_class}
    keys = {part: keys_of((example.text, example.pair) for example in of) for part, of in data.parts.items()}
    shared, of_shared = count_shared(keys, "examples")
    given, of_given = count_given_away(keys, "examples")
    findings = [*data.notes, *of_shared, *of_given]
    for part, counts in parts.items():
        findings += [f"{part} has no example of {name}" for name, count in counts["classes"].items() if not count]
    return {"parts": parts, "shared": shared, "given_away": given, "dropped": data.dropped, "findings": findings}


def write_task_source(task: str, data: TaskData) -> None:
    """Write examples, classes and card, and say what a user should know of the data."""
    card = make_task_card(data)
    with atomic_folder(task_folder(task), summed=True) as folder:
        write_task(folder, data.classes, data.parts)
        write_json(folder / "card.json", card)
    print(*(f"{task}: {finding}" for finding in card["findings"]), sep="\n")


def write_questions_source(task: str, settings: QuestionsSettings) -> None:
    """Copy, split and check a question-answering set, and print findings.

    Raises InputError naming the user's file and the question where something is wrong.
    """
    with atomic_folder(QUESTIONS / task, summed=True) as folder:
        files = {part: folder / f"{part}.json" for part in dict.fromkeys(("train", "dev", *settings.parts))}
        with copied({files[part]: Path(settings.folder) / name for part, name in settings.parts.items()}):
            if settings.split is not None:
                split_questions(files["train"], files["dev"], settings.split, settings.split_seed, settings.split_by)
            counts, findings = count_questions(files)
        parts = {part: counts.pop(part) for part in files}
        write_json(folder / "card.json", {"parts": parts, **counts, "findings": findings})
    print(*(f"{task}: {finding}" for finding in findings), sep="\n")
