"""The data card of a source: the counts of every split, and how many texts splits have in common.

Texts in both training and validation data inflate scores. They are not an error, since published data sets have some.
"""

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from retrace.core.files import atomic_folder, write_json
from retrace.core.guard import guarded
from retrace.core.paths import UNKNOWN, questions_path, running_text, sentences_path, source_folder, splits_of
from retrace.core.records import SOURCES, timed
from retrace.datasets.examples import read_sentences
from retrace.datasets.splits import count_overlaps, count_shared, keys_of, known_rows, shared_finding
from retrace.datasets.squad import Question, read_questions
from retrace.datasets.text import PARTS, read_documents, text_path

Counted = tuple[dict[str, Any], list[str]]  # counts, and findings, one line each
SHARED = {
    "dev in train": "shared_between_splits", "test in train": "shared_by_test_and_train",
    "test in dev": "shared_by_test_and_dev",
}  # fmt: skip
_QUOTED = re.compile(r'".*"".*"')  # a quoted cell with a doubled quote in it


@contextmanager
def new_source(name: str, inputs: Collection[Path], settings: Mapping[str, Any]) -> Iterator[Path]:
    """Yield the folder of a data source to fill, while guarding its inputs and settings; record the time taken."""
    with (
        guarded(name, inputs, settings),
        timed("source", folder=SOURCES),
        atomic_folder(source_folder(name), summed=True) as folder,
    ):
        yield folder


def write_card(folder: Path, card: Mapping[str, Any], prefix: str = "") -> None:
    """Write card.json, and print its findings, one on a line after `prefix`."""
    write_json(folder / "card.json", card)
    for finding in card["findings"]:
        print(f"{prefix}{finding}")


def make_card(folder: Path) -> dict[str, Any]:
    """Read and check all files of the source in `folder`, and count what they hold.

    Raises InputError naming file and line where one is malformed.
    """
    text = {part: _text(text_path(running_text(folder), part)) for part in PARTS}
    files = {part: questions_path(folder, part) for part in splits_of(folder, "squad")}
    (sentences, of_sentences), (questions, of_questions) = _sentences(folder), count_questions(files)
    findings = [f"sst2: {finding}" for finding in of_sentences] + [f"squad: {finding}" for finding in of_questions]
    for part, counts in text.items():
        if counts["unknown_words"]:
            share = 100 * counts["unknown_words"] / counts["words"]
            findings.append(f"text: {share:.1f}% of the words of {part} are {UNKNOWN}")
    return {"text": text, "sst2": sentences, "squad": questions, "findings": findings}


def _text(path: Path) -> dict[str, int]:
    documents = words = unknown = 0
    for document in read_documents(path):
        documents += 1
        words += len(document.split())
        unknown += document.count(UNKNOWN)
    return {"documents": documents, "words": words, "unknown_words": unknown}


def _sentences(folder: Path) -> Counted:
    rows = {part: read_sentences(sentences_path(folder, part)) for part in splits_of(folder, "sst2")}
    counts = {
        part: {"sentences": len(found), "favourable": sum(row.label for row in found)} for part, found in rows.items()
    }
    shared, given, findings = count_overlaps(rows, "sentences")
    for part, found in rows.items():
        quoted = sum(_QUOTED.fullmatch(row.text) is not None for row in found)
        if quoted:
            findings.append(f"{quoted:,} sentences of {part} are quoted as in csv; the quotes are read as text")
    of_test = {"given_away" if part == "dev" else f"given_away_of_{part}": count for part, count in given.items()}
    return counts | _named(shared) | of_test, findings


def count_questions(files: Mapping[str, Path]) -> Counted:
    """Counts of a set of questions by split, and how much the splits share.

    Raises InputError naming the file and the question where one is malformed.
    """
    questions = {part: read_questions(path) for part, path in files.items()}
    counts = {
        part: {"questions": len(found), "unanswerable": sum(not question.answers for question in found)}
        for part, found in questions.items()
    }
    keys = {part: keys_of((question.context, question.text) for question in found) for part, found in questions.items()}
    shared, findings = count_shared(keys, "questions")
    passages = known_rows(*(list(dict.fromkeys(passage for passage, _ in keys[part])) for part in ("dev", "train")))
    findings += shared_finding(passages, "passages", "dev")
    if not counts["train"]["unanswerable"] and counts["dev"]["unanswerable"]:
        findings.append("dev has unanswerable questions and train has none: the model will always answer")
    findings += [finding for part, found in questions.items() for finding in _oddities(part, found)]
    return counts | _named(shared) | {"shared_passages": int(passages.sum())}, findings


def _named(shared: Mapping[str, int]) -> dict[str, int]:
    """Counts of shared rows by the card's keys."""
    return {SHARED[splits]: count for splits, count in shared.items()}


def _oddities(part: str, questions: Sequence[Question]) -> list[str]:
    """Findings on what is allowed but seldom intended."""
    counts = {
        "questions of {} have no text": sum(not question.text for question in questions),
        "questions of {} are on an empty passage": sum(not question.context.strip() for question in questions),
        "answers of {} begin or end in white space, which is left out": sum(
            answer.was_stripped for question in questions for answer in question.answers
        ),
    }
    return [f"{count:,} {what.format(part)}" for what, count in counts.items() if count]
