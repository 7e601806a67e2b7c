"""What `data: hub` reads: running text, labelled sentences and questions, each of a data set of the hub.

They are written in the official formats, so that whatever reads a source reads this one.
"""

import json
from collections.abc import Callable, Iterator, Mapping
from itertools import groupby
from pathlib import Path
from typing import Any, TypeVar

from retrace.core.errors import InputError
from retrace.core.files import atomic_file, write_text
from retrace.core.paths import questions_path, running_text, sentences_path
from retrace.datasets.examples import UNLABELLED
from retrace.datasets.settings import SplitBy
from retrace.datasets.split import split_questions, split_sentences
from retrace.datasets.text import text_path
from retrace.hub.datasets import Split, licence, open_split
from retrace.hub.settings import HubDataset, HubQuestions, HubSentences, HubSettings, HubSplits

Kind = TypeVar("Kind", str, dict)


def write_source(folder: Path, settings: HubSettings) -> dict[str, Any]:
    """Write every part; returns what was read of each and its licence.

    Raises InputError where a data set cannot be had or a row is not what it should be.
    """
    text = settings.text
    for part, split in (("train", text.train), ("valid", text.valid), ("test", text.test)):
        records = open_split(text, split, "hub.text").records()
        lines = _lines if text.rows == "lines" else _documents
        write_text(text_path(running_text(folder), part), lines(_cell(*row, text.text, str) for row in records))
    _write_parts(folder, settings.sst2, "hub.sst2", sentences_path, write_sentences, split_sentences)
    _write_parts(folder, settings.squad, "hub.squad", questions_path, write_questions, split_questions)
    named: dict[str, HubDataset] = {"text": text, "sst2": settings.sst2, "squad": settings.squad}
    return {
        name: {"repository": of.repository, "config": of.config, "licence": licence(of, f"hub.{name}")}
        for name, of in named.items()
    }


def write_sentences(path: Path, split: Split, settings: HubSentences) -> None:
    """Write GLUE's table, in which a text is one line without tabs."""
    rows = ["sentence\tlabel"]
    for where, record in split.records():
        label = record.get(settings.label)
        if label not in (0, 1):
            hint = UNLABELLED if label == -1 else ""  # which stands for no label
            raise InputError(f"{where}: {settings.label} {label!r} is not allowed; expected 0 or 1{hint}")
        rows.append(f"{' '.join(_cell(where, record, settings.text, str).split())}\t{int(label)}")
    write_text(path, "\n".join(rows) + "\n")


def write_questions(path: Path, split: Split, settings: HubQuestions) -> None:
    """Write SQuAD's json; questions that follow one another share title and passage."""
    asked = (_question(where, record, settings) for where, record in split.records())
    articles = groupby(asked, key=lambda each: each[0])
    encoded = json.JSONEncoder(ensure_ascii=False, check_circular=False).encode
    with atomic_file(path) as aside, aside.open("w", encoding="utf-8") as file:
        file.write('{"version": "v2.0", "data": [')
        for number, (title, of_title) in enumerate(articles):
            file.write(", " if number else "")
            file.write(encoded(_article(title, of_title)))
        file.write("]}")


Settings = TypeVar("Settings", bound=HubSplits)


def _write_parts(
    folder: Path, settings: Settings, key: str, path: Callable[[Path, str], Path],
    write: Callable[[Path, Split, Settings], None], split: Callable[[Path, Path, float, int, SplitBy], None],
) -> None:  # fmt: skip
    train, dev = (path(folder, part) for part in ("train", "dev"))
    write(train, open_split(settings, settings.train, key), settings)
    if settings.dev is not None:
        write(dev, open_split(settings, settings.dev, key), settings)
    elif settings.split is not None:
        split(train, dev, settings.split, settings.split_seed, settings.split_by)
    if settings.test is not None:
        write(path(folder, "test"), open_split(settings, settings.test, key), settings)


def _article(title: str, questions: Iterator[tuple[str, str, dict[str, Any]]]) -> dict[str, Any]:
    paragraphs = groupby(questions, key=lambda each: each[1])
    return {
        "title": title,
        "paragraphs": [{"context": context, "qas": [qa for _, _, qa in asked]} for context, asked in paragraphs],
    }


def _question(where: str, record: Mapping[str, Any], settings: HubQuestions) -> tuple[str, str, dict[str, Any]]:
    answers = _cell(where, record, settings.answers, dict)
    texts, starts = answers.get("text"), answers.get("answer_start")
    if not isinstance(texts, list) or not isinstance(starts, list) or len(texts) != len(starts):
        raise InputError(f"{where}: {settings.answers}: expected as many of text as of answer_start")
    qa = {
        "id": _cell(where, record, settings.id, str),
        "question": _cell(where, record, settings.question, str),
        "answers": [{"text": text, "answer_start": start} for text, start in zip(texts, starts, strict=True)],
        "is_impossible": not texts,
    }
    title = "" if settings.title is None else _cell(where, record, settings.title, str)
    return title, _cell(where, record, settings.context, str), qa


def _cell(where: str, record: Mapping[str, Any], column: str, kind: type[Kind]) -> Kind:
    value = record.get(column)
    if not isinstance(value, kind):
        raise InputError(f"{where}: no {column!r} of type {kind.__name__}; there is: {', '.join(record)}")
    return value


def _lines(rows: Iterator[str]) -> str:
    return "".join(row if row.endswith("\n") else f"{row}\n" for row in rows)


def _documents(rows: Iterator[str]) -> str:
    """Each with an empty line after it and none within."""
    return "".join("\n".join(line for line in row.splitlines() if line.strip()) + "\n\n" for row in rows)
