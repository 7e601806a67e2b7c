"""What `data: hub` reads: running text, labelled sentences and questions, each of a data set of the hub.

They are written in the official formats, so that whatever reads a source reads this one.
"""

import json
from collections.abc import Callable, Iterator, Mapping
from itertools import groupby
from pathlib import Path
from typing import Any, TypeVar

from retrace.core.errors import InputError
from retrace.core.files import write_text
from retrace.core.paths import questions_path, running_text, sentences_path
from retrace.datasets.examples import UNLABELLED
from retrace.datasets.settings import SplitBy
from retrace.datasets.splits import split_questions, split_sentences
from retrace.datasets.text import text_path
from retrace.hub.datasets import Split, licence, open_split
from retrace.hub.settings import HubQuestions, HubSentences, HubSettings, HubSplits, HubText

NUL = "\0"  # crawled text may have some, and no file of text does
Kind = TypeVar("Kind", str, dict)
Settings = TypeVar("Settings", bound=HubSplits)


def write_source(folder: Path, settings: HubSettings) -> dict[str, Any]:
    """Write every part; returns what was read of each and its licence.

    Raises InputError where a data set cannot be had or a row is not what it should be.
    """
    _write_text(folder, settings.text)
    _write_parts(folder, settings.sst2, "hub.sst2", sentences_path, write_sentences, split_sentences)
    _write_parts(folder, settings.squad, "hub.squad", questions_path, write_questions, split_questions)
    return {
        name: {"repository": of.repository, "config": of.config, "licence": licence(of, f"hub.{name}")}
        for name, of in (("text", settings.text), ("sst2", settings.sst2), ("squad", settings.squad))
    }


def _write_text(folder: Path, settings: HubText) -> None:
    """Write lines as they are, or documents with an empty line after each and none within."""
    for part, split in (("train", settings.train), ("valid", settings.valid), ("test", settings.test)):
        records = open_split(settings, split, "hub.text").records()
        rows = (_cell(*record, settings.text, str).replace(NUL, " ") for record in records)
        if settings.rows == "lines":
            text = "".join(row if row.endswith("\n") else f"{row}\n" for row in rows)
        else:
            text = "".join("\n".join(filter(str.strip, row.splitlines())) + "\n\n" for row in rows)
        write_text(text_path(running_text(folder), part), text)


def write_sentences(path: Path, split: Split, settings: HubSentences) -> None:
    """Write GLUE's table, in which a text is one line without tabs."""
    rows = ["sentence\tlabel"]
    for where, record in split.records():
        label = record.get(settings.label)
        if label not in (0, 1):
            hint = UNLABELLED if label == -1 else ""  # which stands for no label
            raise InputError(f"{where}: {settings.label} {label!r} is not allowed; expected 0 or 1{hint}")
        text = _cell(where, record, settings.text, str).replace(NUL, " ")
        rows.append(f"{' '.join(text.split())}\t{int(label)}")
    write_text(path, "\n".join(rows) + "\n")


def write_questions(path: Path, split: Split, settings: HubQuestions) -> None:
    """Write SQuAD's json; questions that follow one another share title and passage."""
    asked = (_question(where, record, settings) for where, record in split.records())
    articles = [_article(title, questions) for title, questions in groupby(asked, key=lambda each: each[0])]
    write_text(path, json.dumps({"version": "v2.0", "data": articles}, ensure_ascii=False, check_circular=False))


def _write_parts(
    folder: Path, settings: Settings, key: str, path: Callable[[Path, str], Path],
    write: Callable[[Path, Split, Settings], None], split: Callable[[Path, Path, float, int, SplitBy], None],
) -> None:  # fmt: skip
    for part, name in settings.parts.items():
        write(path(folder, part), open_split(settings, name, key), settings)
    if settings.split is not None:
        split(path(folder, "train"), path(folder, "dev"), settings.split, settings.split_seed, settings.split_by)


def _article(title: str, questions: Iterator[tuple[str, str, dict[str, Any]]]) -> dict[str, Any]:
    paragraphs = groupby(questions, key=lambda each: each[1])
    return {
        "title": title,
        "paragraphs": [{"context": context, "qas": [qa for _, _, qa in asked]} for context, asked in paragraphs],
    }


def _question(where: str, record: Mapping[str, Any], settings: HubQuestions) -> tuple[str, str, dict[str, Any]]:
    """Title and passage of a question, and its entry in SQuAD's json."""
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
