"""Data sets of the Hugging Face Hub: the repositories that data/params.yaml names, each at a commit → data/.

The running text, the labelled sentences (sst2) and the questions (squad) are checked and written as from every other
source. Findings and licences are in each folder's card.json. Files downloaded before are read without the network.

    python -m stages.sources.hub
"""

import json
from collections.abc import Mapping
from itertools import groupby
from pathlib import Path
from typing import Any

from retrace.core.errors import InputError, exit_cleanly
from retrace.core.files import write_text
from retrace.core.paths import questions_path
from retrace.datasets.examples import SENTIMENTS, UNLABELLED, Example, TaskData, write_task
from retrace.datasets.source import Source, new_source
from retrace.datasets.splits import split_questions, split_rows
from retrace.datasets.text import Table, cell, naming, text_cell, text_path
from retrace.hub.datasets import licence, open_split
from retrace.hub.settings import HubParams, HubQuestions, HubSentences, HubSettings, HubText

NUL = "\0"  # occurs in crawled text; readers of text files refuse it


def main() -> None:
    params = HubParams.read()
    with new_source("hub", params) as source, naming(_origins(source, params.hub)):
        source.write_cards(write_source(source, params.hub))


def write_source(source: Source, settings: HubSettings) -> dict[str, Any]:
    """Fill all three folders; returns the repository, config and licence of each by name.

    Raises InputError if a data set cannot be fetched or a row is malformed.
    """
    write_running_text(source.text, settings.text)
    sentences, questions = settings.sst2, settings.squad
    splits = {part: open_split(sentences, name, "hub.sst2") for part, name in sentences.parts.items()}
    found = {part: sentences_of(split, sentences) for part, split in splits.items()}
    write_task(source.sst2, TaskData(SENTIMENTS, split_rows(found, sentences, splits["train"].name)))
    for part, name in questions.parts.items():
        _write_questions(questions_path(source.squad, part), open_split(questions, name, "hub.squad"), questions)
    split_questions(source.squad, questions)
    return {
        name: {"repository": dataset.repository, "config": dataset.config, "licence": licence(dataset, f"hub.{name}")}
        for name, dataset in (("text", settings.text), ("sst2", sentences), ("squad", questions))
    }


def _origins(source: Source, settings: HubSettings) -> dict[Path, str]:
    """The split that each file of running text and questions is made from."""
    text, squad = settings.text, settings.squad
    files = {text_path(source.text, part): text.split_name(split) for part, split in text.parts.items()}
    return files | {questions_path(source.squad, part): squad.split_name(split) for part, split in squad.parts.items()}


def write_running_text(folder: Path, settings: HubText) -> None:
    """Write lines as they are, or documents with a blank line after each and none within.

    Lines of documents are not indented, so that none reads as one of WikiText's titles, which would begin an article.
    """
    for part, split in settings.parts.items():
        records = open_split(settings, split, "hub.text").records
        rows = (text_cell(where, cells, settings.text).replace(NUL, " ") for where, cells in records)
        if settings.rows == "lines":
            text = "".join(row if row.endswith("\n") else f"{row}\n" for row in rows)
        else:
            text = "".join("\n".join(filter(None, map(str.strip, row.splitlines()))) + "\n\n" for row in rows)
        write_text(text_path(folder, part), text)


def sentences_of(split: Table, settings: HubSentences) -> list[Example]:
    """The sentences of a split; white space within them is read as spaces.

    Raises InputError if 0 is the positive class; or if a label is not 0 or 1 or a sentence is empty, naming the row.
    """
    names = ", ".join(split.classes.get(settings.label, SENTIMENTS))
    if names.lower().startswith("pos"):
        wanted = f"expected {', '.join(SENTIMENTS)}; a task under hub.classification may have any order"
        raise InputError(f"{split.name}: {settings.label}: its classes are {names}; {wanted}")
    found = []
    for where, cells in split.records:
        label = cell(where, cells, settings.label)
        if isinstance(label, bool) or label not in (0, 1):
            hint = UNLABELLED if label == -1 else ""  # -1 means no label
            raise InputError(f"{where}: {settings.label} {label!r} is not allowed; expected 0 or 1{hint}")
        text = " ".join(text_cell(where, cells, settings.text).replace(NUL, " ").split())
        if not text:
            raise InputError(f"{where}: the {settings.text} is empty")
        found.append(Example(text, None, int(label)))
    if not found:
        raise InputError(f"{split.name}: it contains no example")
    return found


def _write_questions(path: Path, split: Table, settings: HubQuestions) -> None:
    """Write SQuAD's json; consecutive questions share title and passage."""
    asked = (_question(where, cells, settings) for where, cells in split.records)
    articles = []
    for title, of_title in groupby(asked, key=lambda each: each[0]):
        passages = groupby(of_title, key=lambda each: each[1])
        paragraphs = [{"context": context, "qas": [qa for _, _, qa in asked]} for context, asked in passages]
        articles.append({"title": title, "paragraphs": paragraphs})
    write_text(path, json.dumps({"version": "v2.0", "data": articles}, ensure_ascii=False, check_circular=False))


def _question(where: str, cells: Mapping[str, Any], settings: HubQuestions) -> tuple[str, str, dict[str, Any]]:
    """Title and passage of a question, and its entry in SQuAD's json."""
    match cell(where, cells, settings.answers):
        case {"text": list(texts), "answer_start": list(starts)} if len(texts) == len(starts):
            answers = [{"text": text, "answer_start": start} for text, start in zip(texts, starts, strict=True)]
        case _:
            raise InputError(f"{where}: {settings.answers}: expected lists text and answer_start of equal length")
    qa = {
        "id": text_cell(where, cells, settings.id),
        "question": text_cell(where, cells, settings.question),
        "answers": answers,
        "is_impossible": not answers,
    }
    title = "" if settings.title is None else text_cell(where, cells, settings.title)
    return title, text_cell(where, cells, settings.context), qa


if __name__ == "__main__":
    exit_cleanly(main)
