"""What a data source holds, checked: counts of every split, and texts that splits share.

A text that is in training and validation alike makes scores look better than they are, so it is
counted and reported; it is no error, for published data sets have some.
"""

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from stages.corpus.glue import read_sentences
from stages.corpus.source import has_test, questions_path, running_text, sentences_path
from stages.corpus.squad import read_questions
from stages.corpus.text import PARTS, UNKNOWN, count_words, read_documents, text_path
from stages.harness.collection import without_collection


def make_card(folder: Path) -> dict[str, Any]:
    """Read every file of the source in `folder` and count.

    Raises InputError naming file and line where something is wrong.
    """
    with without_collection():
        card = {
            "text": {part: _text(text_path(running_text(folder), part)) for part in PARTS},
            "sst2": _sentences(folder),
            "squad": _questions(folder),
        }
    return card | {"findings": _findings(card)}


def _findings(card: dict[str, Any]) -> list[str]:
    """What a user should know of the data, one line each."""
    found = []
    for task, what in (("sst2", "sentences"), ("squad", "questions")):
        shared = card[task]["shared_between_splits"]
        if shared:
            found.append(f"{task}: {shared} {what} of dev are in train too")
        for other in ("train", "dev"):
            count = card[task].get(f"shared_by_test_and_{other}")
            if count:
                found.append(f"{task}: {count} {what} of test are in {other} too")
    if card["squad"]["shared_passages"]:
        found.append(f"squad: {card['squad']['shared_passages']} passages of dev are in train too")
    if not card["squad"]["train"]["unanswerable"] and card["squad"]["dev"]["unanswerable"]:
        found.append("squad: dev has unanswerable questions and train none: the model will always answer")
    for part, text in card["text"].items():
        if text["unknown_words"]:
            share = 100 * text["unknown_words"] / text["words"]
            found.append(f"text: {share:.1f}% of the words of {part} are {UNKNOWN}")
    return found


def _text(path: Path) -> dict[str, int]:
    documents = words = unknown = 0
    for document in read_documents(path):
        documents += 1
        words += count_words(document)
        unknown += document.count(UNKNOWN)
    return {"documents": documents, "words": words, "unknown_words": unknown}


def _sentences(folder: Path) -> dict[str, Any]:
    rows = {part: read_sentences(sentences_path(folder, part)) for part in _parts(folder, "sst2")}
    counts = {
        part: {"sentences": len(found), "favourable": sum(row.label for row in found)} for part, found in rows.items()
    }
    return counts | _shared_by_parts({part: [row.text for row in found] for part, found in rows.items()})


def _questions(folder: Path) -> dict[str, Any]:
    asked = {part: read_questions(questions_path(folder, part)) for part in _parts(folder, "squad")}
    counts = {
        part: {"questions": len(found), "unanswerable": sum(not question.answers for question in found)}
        for part, found in asked.items()
    }
    shared = _shared_by_parts({part: [(q.context, q.text) for q in found] for part, found in asked.items()})
    passages = _shared(*((q.context for q in asked[part]) for part in ("train", "dev")))
    return counts | shared | {"shared_passages": passages}


def _parts(folder: Path, task: str) -> tuple[str, ...]:
    return ("train", "dev", "test") if has_test(folder, task) else ("train", "dev")


def _shared_by_parts(items: Mapping[str, Sequence[Any]]) -> dict[str, int]:
    """What dev shares with train and, where there is a test, that with both."""
    found = {"shared_between_splits": _shared(items["train"], items["dev"])}
    if "test" in items:
        found |= {f"shared_by_test_and_{other}": _shared(items[other], items["test"]) for other in ("train", "dev")}
    return found


def _shared(train: Iterable[Any], dev: Iterable[Any]) -> int:
    """How many different items of dev are in train."""
    return len(set(train) & set(dev))
