"""Further tasks: classification, from files of any format or rows from elsewhere, and questions in SQuAD's format."""

import re
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from unicodedata import normalize

from retrace.core.errors import InputError
from retrace.core.files import atomic_folder
from retrace.core.paths import QUESTIONS, TASKS, questions_path
from retrace.core.settings import DATA_PARAMS
from retrace.datasets.card import examples_card, questions_card, write_card
from retrace.datasets.examples import MOST_DIGITS, Example, TaskData, class_order, write_task
from retrace.datasets.settings import TaskSettings
from retrace.datasets.splits import split_questions, split_rows
from retrace.datasets.text import Records, Table, copied, text_cell
from retrace.files.formats import label_of, read_records
from retrace.files.settings import ClassificationSettings, TaskFiles

MOST_NAMED = 10  # classes in a message
_WHOLE = re.compile(r"-?[0-9]+\.0+")  # as pandas writes integers beside gaps


@dataclass(frozen=True)
class LabelledRow:
    """A row with its label as written."""

    where: str  # file and line, or data set and row
    text: str
    pair: str | None
    label: str


def read_files(settings: ClassificationSettings, key: str) -> TaskData:
    """Read all files of a task; `key` is its entry in data/params.yaml.

    Raises InputError naming the file and row of what is wrong.
    """
    tables = {part: Table(str(path), read_records(path, settings.format)) for part, path in settings.paths.items()}
    return parse_task(settings, key, tables)


def parse_task(settings: TaskSettings, key: str, tables: Mapping[str, Table]) -> TaskData:
    """Make examples from a task's tables, by part; `key` is its entry in data/params.yaml.

    Raises InputError naming the table and row of what is wrong.
    """
    rows = {part: list(_read_rows(table.records, settings, key)) for part, table in tables.items()}
    labels = {row.label for part in rows.values() for row in part}
    for label in settings.drop:
        if label not in labels:
            raise InputError(f"{DATA_PARAMS}: {key}.drop: no row has the label {label!r}")
    kept = {part: [row for row in found if row.label not in settings.drop] for part, found in rows.items()}
    for part, table in tables.items():
        if not kept[part]:
            raise InputError(f"{table.name}: it contains no example")
    train = tables["train"].name
    if settings.classes is None:
        _require_one_form(kept["train"])
    classes = settings.classes or tuple(class_order(row.label for row in kept["train"]))
    if len(classes) < 2:
        raise InputError(f"{train}: every label is {', '.join(classes)}; expected two classes or more")
    split = split_rows(kept, settings, train)
    if settings.classes is None:  # they are the labels of train, and a number elsewhere may mean any of them
        numbers, first = _by_name(classes), 0
    else:
        numbers, first = _class_numbers({row.label for found in split.values() for row in found}, classes, key)
    notes = [f"labels are numbered from 1: 1 is {classes[0]}, {len(classes)} is {classes[-1]}"] if first else []
    alike = Counter(map(str.casefold, classes))
    notes += [f"class {name} differs from another only in case" for name in classes if alike[name.casefold()] > 1]
    parts = {part: [_example(row, numbers, classes) for row in found] for part, found in split.items()}
    return TaskData(classes, parts, sum(map(len, rows.values())) - sum(map(len, kept.values())), tuple(notes))


def _read_rows(records: Records, settings: TaskSettings, key: str) -> Iterator[LabelledRow]:
    columns = (settings.text,) if isinstance(settings.text, str) else settings.text
    of_text, of_pair, of_label = (
        f"; the column is set by {key}.{name} in {DATA_PARAMS}" for name in ("text", "pair", "label")
    )
    for where, record in records:
        # A missing part of a joined text is empty in csv and null elsewhere.
        given = [column for column in columns if len(columns) == 1 or record.get(column, "") is not None]
        text = " ".join(filter(None, (text_cell(where, record, column, of_text).strip() for column in given)))
        pair = None if settings.pair is None else text_cell(where, record, settings.pair, of_pair).strip()
        label = label_of(where, record, settings.label, of_label)
        if _WHOLE.fullmatch(label) and label not in (*(settings.classes or ()), *settings.drop):
            label = label.partition(".")[0]
        for column, value in (("text", text), (settings.pair, pair)):
            if value == "":
                raise InputError(f"{where}: the {column} is empty")
        yield LabelledRow(where, text, pair, label)


def _require_one_form(rows: Iterable[LabelledRow]) -> None:
    """Raise InputError if labels are equal but for their Unicode form, which would make two classes of one."""
    first: dict[str, LabelledRow] = {}
    for row in rows:
        same = first.setdefault(normalize("NFC", row.label), row)
        if row.label != same.label:
            said = f"label {row.label!a} is not allowed; expected {same.label!a}, which looks the same"
            raise InputError(f"{row.where}: {said}")


def _by_name(classes: Sequence[str]) -> dict[str, int]:
    return {name: number for number, name in enumerate(classes)}


def _class_numbers(labels: Collection[str], classes: Sequence[str], key: str) -> tuple[dict[str, int], int]:
    """Class numbers by label (a name or, unless names are numbers, a number counted from 0 or 1), and that 0 or 1.

    Raises InputError if the labels do not tell which.
    """
    by_name = _by_name(classes)
    numbers = {int(label) for label in labels if label.isdecimal() and len(label) <= MOST_DIGITS}
    if any(name.isdecimal() or _WHOLE.fullmatch(name) for name in classes):
        return by_name, 0
    first = 1 if numbers and 0 not in numbers else 0
    if first and max(numbers) < len(classes) and all(label.isdecimal() or label in by_name for label in labels):
        raise InputError(
            f"{DATA_PARAMS}: {key}.classes: labels from {min(numbers)} to {max(numbers)} do not tell whether the first "
            f"of {len(classes)} classes is 0 or 1; expected a row labelled 0 or {len(classes)}, or names as labels"
        )
    return by_name | {str(first + number): number for number in range(len(classes))}, first


def _example(row: LabelledRow, numbers: Mapping[str, int], classes: Sequence[str]) -> Example:
    if row.label not in numbers:
        known = ", ".join(classes[:MOST_NAMED])
        if len(classes) > MOST_NAMED:
            known += f" and {len(classes) - MOST_NAMED} more; is this the column of labels?"
        known += _lookalike(row.label, numbers)
        raise InputError(f"{row.where}: label {row.label!r} is not allowed; expected one of {known}")
    return Example(row.text, row.pair, numbers[row.label])


def _lookalike(label: str, known: Collection[str]) -> str:
    """A hint where a label is one of the known ones in another Unicode form, such as an e and an accent for é."""
    same = [name for name in known if normalize("NFC", name) == normalize("NFC", label)]
    return f"; it is {label!a}, which looks like {same[0]!a}" if same else ""


def write_task_source(task: str, data: TaskData) -> None:
    """Write examples, classes and card, and print the findings."""
    with atomic_folder(TASKS / task, summed=True) as folder:
        write_task(folder, data)
        write_card(folder, task, examples_card(data))


def write_questions_source(task: str, settings: TaskFiles) -> None:
    """Copy, split and check a question-answering set, write its card and print the findings.

    Raises InputError naming the user's file and the question that is wrong.
    """
    with atomic_folder(QUESTIONS / task, summed=True) as folder:
        files = {questions_path(folder, part): path for part, path in settings.paths.items()}
        with copied(files):
            split_questions(folder, settings)
            write_card(folder, task, questions_card(folder))
