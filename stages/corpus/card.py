"""What a data source holds, checked: counts of every split, and texts that splits share.

A text that is in training and validation alike makes scores look better than they are, so it is
counted and reported; it is no error, for published data sets have some.
"""

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from stages.corpus.glue import read_sentences
from stages.corpus.overlap import given_away, given_away_finding, keys_of, known_rows, shared_finding, words_of
from stages.corpus.source import questions_path, running_text, sentences_path
from stages.corpus.squad import Question, read_questions
from stages.corpus.text import PARTS, UNKNOWN, count_words, read_documents, text_path
from stages.harness.collection import without_collection

_QUOTED = re.compile(r'".*"".*"')  # a cell with a quote in it, which is doubled


def make_card(folder: Path) -> dict[str, Any]:
    """Read every file of the source in `folder` and count.

    Raises InputError naming file and line where something is wrong.
    """
    with without_collection():
        text = {part: _text(text_path(running_text(folder), part)) for part in PARTS}
        (sentences, of_sentences), (questions, of_questions) = _sentences(folder), _questions(folder)
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
        words += count_words(document)
        unknown += document.count(UNKNOWN)
    return {"documents": documents, "words": words, "unknown_words": unknown}


def _sentences(folder: Path) -> tuple[dict[str, Any], list[str]]:
    """Counts, and what a user should know, one line each."""
    train, dev = (read_sentences(sentences_path(folder, part)) for part in ("train", "dev"))
    counts = {
        part: {"sentences": len(rows), "favourable": sum(row.label for row in rows)}
        for part, rows in (("train", train), ("dev", dev))
    }
    words = [[words_of(row.text) for row in rows] for rows in (dev, train)]
    shared, given = known_rows(*words), given_away(*words)
    findings = shared_finding(shared, "sentences", "dev") + given_away_finding(given, shared, "sentences", "dev")
    for part, rows in (("train", train), ("dev", dev)):
        quoted = sum(_QUOTED.fullmatch(row.text) is not None for row in rows)
        if quoted:
            findings.append(f"{quoted:,} sentences of {part} are quoted as in csv; the quotes are read as text")
    return counts | {"shared_between_splits": int(shared.sum()), "given_away": int(given.sum())}, findings


def _questions(folder: Path) -> tuple[dict[str, Any], list[str]]:
    """Counts, and what a user should know, one line each."""
    parts = {part: read_questions(questions_path(folder, part)) for part in ("train", "dev")}
    counts = {
        part: {"questions": len(asked), "unanswerable": sum(not question.answers for question in asked)}
        for part, asked in parts.items()
    }
    train, dev = (keys_of((question.context, question.text) for question in asked) for asked in parts.values())
    shared = known_rows(dev, train)
    passages = known_rows(*(list(dict.fromkeys(passage for passage, _ in keys)) for keys in (dev, train)))
    findings = shared_finding(shared, "questions", "dev") + shared_finding(passages, "passages", "dev")
    if not counts["train"]["unanswerable"] and counts["dev"]["unanswerable"]:
        findings.append("dev has unanswerable questions and train none: the model will always answer")
    findings += [finding for part, asked in parts.items() for finding in _oddities(part, asked)]
    return counts | {"shared_between_splits": int(shared.sum()), "shared_passages": int(passages.sum())}, findings


def _oddities(part: str, questions: Sequence[Question]) -> list[str]:
    """What is no error and yet seldom meant."""
    counts = {
        "answers of {} stand between spaces that are left out": sum(
            answer.trimmed for question in questions for answer in question.answers
        ),
        "questions of {} have no text": sum(not question.text for question in questions),
        "questions of {} are on an empty passage": sum(not question.context.strip() for question in questions),
    }
    return [f"{count:,} {what.format(part)}" for what, count in counts.items() if count]
