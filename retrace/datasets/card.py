"""Data cards: the counts of every split, and how many texts splits have in common.

Texts in both training and validation data inflate scores. They are not an error, since published data sets have some.
"""

import re
from array import array
from collections import Counter
from collections.abc import Iterable, Sequence
from hashlib import blake2b
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np

from retrace.core.errors import printable
from retrace.core.files import write_json
from retrace.core.paths import CARD, UNKNOWN, questions_path, splits_of
from retrace.datasets.examples import TaskData
from retrace.datasets.splits import count_overlaps, count_shared, keys_of, shared_finding
from retrace.datasets.squad import Question, read_questions
from retrace.datasets.text import PARTS, read_documents, text_path

Card = dict[str, Any]  # "parts": counts by split; "findings": one line each; and more counts
# A quoted cell with a doubled quote in it; only the first one is tried, as a text of quotes alone would take hours.
_QUOTED = re.compile(r'"(?>.*?"").*"')


def write_card(folder: Path, name: str, card: Card) -> None:
    """Write the card of the data called `name`, and print its findings."""
    write_json(folder / CARD, card)
    for finding in card["findings"]:
        print(printable(f"{name}: {finding}"))  # it may quote the name of a class


def text_card(folder: Path) -> Card:
    """The card of running text: documents, words and, of these, WikiText's unknown ones.

    Findings also say how many documents of a split are in an earlier one, word for word. Raises InputError naming file
    and line where one is malformed.
    """
    counted = {part: _counted(read_documents(text_path(folder, part))) for part in PARTS}
    findings = []
    for earlier, later in combinations(PARTS, 2):
        shared = np.isin(counted[later][1], counted[earlier][1])
        findings += shared_finding(shared, "documents", later, earlier)
    parts = {part: counts for part, (counts, _) in counted.items()}
    findings += [
        f"{100 * counts['unknown_words'] / counts['words']:.1f}% of the words of {part} are {UNKNOWN}"
        for part, counts in parts.items()
        if counts["unknown_words"]
    ]
    return {"parts": parts, "findings": findings}


def _counted(documents: Iterable[str]) -> tuple[dict[str, int], np.ndarray]:
    """Counts of documents and words, and a hash of each document's words: (N,), uint64, as texts may be large."""
    hashes, total, unknown = array("Q"), 0, 0
    for document in documents:
        words = document.split()
        hashes.frombytes(blake2b(" ".join(words).encode(), digest_size=hashes.itemsize).digest())
        total += len(words)
        unknown += sum(UNKNOWN in word for word in words)
    counts = {"documents": len(hashes), "words": total, "unknown_words": unknown}
    return counts, np.array(hashes)


def examples_card(data: TaskData) -> Card:
    """The card of a classification task: examples of each class, and what splits share.

    `shared` counts examples of the later split, `given_away` those that the training data gives away.
    """
    parts: dict[str, Any] = {}
    for part, examples in data.parts.items():
        counts = Counter(example.label for example in examples)
        by_class = {name: counts[number] for number, name in enumerate(data.classes)}
        parts[part] = {"examples": len(examples), "classes": by_class}
    shared, given, overlaps = count_overlaps(data.parts)
    findings = [*data.notes, *overlaps]
    for part, counts in parts.items():
        findings += [f"{part} has no example of {name}" for name, count in counts["classes"].items() if not count]
        quoted = sum(_QUOTED.fullmatch(row.text) is not None for row in data.parts[part])
        if quoted:
            findings.append(f"{part}: examples quoted as in csv, whose quotes are read as text: {quoted:,}")
    return {"parts": parts, "shared": shared, "given_away": given, "dropped": data.dropped, "findings": findings}


def questions_card(folder: Path) -> Card:
    """The card of the questions in a task's folder: their number, those without an answer, and what splits share.

    Raises InputError naming the file and the question where one is malformed.
    """
    questions = {part: read_questions(questions_path(folder, part)) for part in splits_of(folder)}
    parts = {
        part: {"questions": len(found), "unanswerable": sum(not question.answers for question in found)}
        for part, found in questions.items()
    }
    keys = {part: keys_of((question.context, question.text) for question in found) for part, found in questions.items()}
    shared, findings = count_shared(keys, "questions")
    passages = {part: list(dict.fromkeys(passage for passage, _ in found)) for part, found in keys.items()}
    of_passages, shared_passages = count_shared(passages, "passages")
    findings += shared_passages
    if not parts["train"]["unanswerable"]:
        said = "has unanswerable questions and train has none: the model will always answer"
        findings += [f"{part} {said}" for part, counts in parts.items() if counts["unanswerable"]]
    findings += [finding for part, found in questions.items() for finding in _oddities(part, found)]
    return {"parts": parts, "shared": shared, "shared_passages": of_passages["dev in train"], "findings": findings}


def _oddities(part: str, questions: Sequence[Question]) -> list[str]:
    """Findings on what is allowed but seldom intended."""
    answers = [answer for question in questions for answer in question.answers]
    counts = {
        "questions without text": sum(not question.text for question in questions),
        "questions on an empty passage": sum(not question.context.strip() for question in questions),
        "answers with white space around them, which is left out": sum(answer.was_stripped for answer in answers),
    }
    return [f"{part}: {what}: {count:,}" for what, count in counts.items() if count]
