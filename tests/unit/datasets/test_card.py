from pathlib import Path
from typing import Any

import pytest

from retrace.core.files import write_json, write_text
from retrace.core.paths import questions_path
from retrace.datasets.card import examples_card, questions_card, text_card
from retrace.datasets.examples import Example, TaskData
from retrace.datasets.splits import INSIDE_FIRST
from retrace.datasets.text import text_path

PASSAGE, ANSWER = "Ada Lund founded the guild in Thorndel.", {"text": "Ada Lund", "answer_start": 0}


def _sentences(**parts: list[str]) -> dict[str, Any]:
    """The card of sentences of alternating labels."""
    rows = {
        part: [Example(text, None, number % 2) for number, text in enumerate(texts)] for part, texts in parts.items()
    }
    return examples_card(TaskData(("bad", "good"), rows))


def _questions(folder: Path, **parts: list[str]) -> dict[str, Any]:
    """The card of questions on one passage."""
    for part, questions in parts.items():
        qas = [{"id": str(number), "question": asked, "answers": [ANSWER]} for number, asked in enumerate(questions)]
        write_json(questions_path(folder, part), {"data": [{"paragraphs": [{"context": PASSAGE, "qas": qas}]}]})
    return questions_card(folder)


def test_what_splits_share_is_counted_by_rows(tmp_path: Path) -> None:
    train = ["a good film that I saw twice", "Stale ale ."]
    dev = ["stale  ale.", "STALE ALE .", "a good film", "not seen by anyone"]
    card = _sentences(train=train, dev=dev)
    assert card["findings"] == [
        "2 of 4 examples of dev are in train too",
        "3 of 4 examples of dev are part of a training text, or contain one with at least half of their words",
    ]
    assert (card["shared"], card["given_away"]) == ({"dev in train": 2}, {"dev": 3})
    card = _questions(tmp_path, train=["Who founded it?", "Who?"], dev=["who founded it ?", "What?"])
    assert card["findings"] == ["1 of 2 questions of dev are in train too", "1 of 1 passages of dev are in train too"]
    assert (card["shared"], card["shared_passages"]) == ({"dev in train": 1}, 1)


@pytest.mark.timeout(60)  # hours, if every pair of quotes were tried
def test_a_text_of_many_quotes_is_counted_at_once() -> None:
    card = _sentences(train=['"' * 200_000, '"' * 200_000 + "x"], dev=["c", "d"])
    assert card["findings"] == ["train: examples quoted as in csv, whose quotes are read as text: 1"]


def test_a_test_split_is_counted_and_what_it_shares_and_what_is_odd(tmp_path: Path) -> None:
    card = _sentences(train=["b", "a"], dev=["c", '"a ""short"" one"', '"as it is"'], test=["c", "a", "d"])
    assert card["parts"]["test"] == {"examples": 3, "classes": {"bad": 2, "good": 1}}
    assert card["shared"] == {"dev in train": 0, "test in train": 1, "test in dev": 1}
    lacking = _sentences(train=["a"], dev=["b", "c"])
    assert lacking["parts"]["train"] == {"examples": 1, "classes": {"bad": 1, "good": 0}}
    assert lacking["findings"] == ["train has no example of good"]
    assert card["findings"] == [
        "1 of 3 examples of test are in train too",
        "1 of 3 examples of test are in dev too",
        "dev: examples quoted as in csv, whose quotes are read as text: 1",
    ]
    asked = _questions(tmp_path, train=["Who?"], dev=[" "])
    assert asked["findings"] == ["1 of 1 passages of dev are in train too", "dev: questions without text: 1"]
    assert set(asked["parts"]) == {"train", "dev"}


def test_documents_that_parts_of_the_text_share_are_counted(tmp_path: Path) -> None:
    """Word for word, whatever the white space."""
    for part, text in {
        "train": "a b\n\nc d\n\ne\n",
        "valid": "c  d\n\nb a\n\nx\n",
        "test": "a b\n\na\nb\n\nx\n\ny\n",
    }.items():
        write_text(text_path(tmp_path, part), text)
    assert text_card(tmp_path)["findings"] == [
        "1 of 3 documents of valid are in train too",
        "2 of 4 documents of test are in train too",
        "1 of 4 documents of test are in valid too",
    ]


def test_unknown_words_are_a_share_of_all_words(tmp_path: Path) -> None:
    """A word with several marks is one word. Each article, and each paragraph of plain text, is a document."""
    train = "a <unk> b c\n\n<unk><unk> d <unk>-<unk> f\n"
    for part, text in {"train": train, "valid": "a\n", "test": "a b\n"}.items():
        write_text(text_path(tmp_path, part), text)
    card = text_card(tmp_path)
    assert card["parts"]["train"] == {"documents": 2, "words": 8, "unknown_words": 3}
    assert card["findings"] == ["37.5% of the words of train are <unk>"]


def test_a_pair_is_shared_if_both_texts_are() -> None:
    train = [Example("the film is a good one", "good", 1)]
    dev = [Example("The film is a good one", "good", 1), Example("the film is a good one", "a film", 0)]
    card = examples_card(TaskData(("no", "yes"), {"train": train, "dev": dev}))
    assert (card["shared"], card["given_away"]) == ({"dev in train": 1}, {"dev": 2})
    assert card["findings"][:2] == ["1 of 2 examples of dev are in train too", f"2 of 2 examples of dev {INSIDE_FIRST}"]


def test_what_a_test_set_of_questions_shares_is_counted_too(tmp_path: Path) -> None:
    """Passages with other questions, and unanswerable questions that train has none of."""
    asked = {"id": "1", "question": "Who?", "answers": [ANSWER]}
    for part, context in (("train", PASSAGE), ("dev", f"{PASSAGE} It stood."), ("test", PASSAGE.upper())):
        qa = asked if part != "test" else {"id": "1", "question": "Why?", "answers": []}
        write_json(questions_path(tmp_path, part), {"data": [{"paragraphs": [{"context": context, "qas": [qa]}]}]})
    card = questions_card(tmp_path)
    assert card["shared"] == {"dev in train": 0, "test in train": 0, "test in dev": 0}
    assert card["findings"] == [
        "1 of 1 passages of test are in train too",
        "test has unanswerable questions and train has none: the model will always answer",
    ]


def test_shared_passages_are_those_of_dev_and_odd_questions_are_counted(tmp_path: Path) -> None:
    def paragraph(context: str, *answers: str | None) -> dict[str, Any]:
        found = [[] if text is None else [{"text": text, "answer_start": context.index(text)}] for text in answers]
        qas = [{"id": f"{context} {number}", "question": "Who?", "answers": of} for number, of in enumerate(found)]
        return {"context": context, "qas": qas}

    train = [paragraph("Ada ran.", "Ada"), paragraph("Bob ran.", " ran")]
    dev = [paragraph("Ada ran.", "Ada", None), paragraph("Eve ran.", None), paragraph(" ", None)]
    for part, paragraphs in (("train", train), ("dev", dev)):
        write_json(questions_path(tmp_path, part), {"data": [{"paragraphs": paragraphs}]})
    card = questions_card(tmp_path)
    assert card["parts"] == {"train": {"questions": 2, "unanswerable": 0}, "dev": {"questions": 4, "unanswerable": 3}}
    assert card["findings"] == [
        "2 of 4 questions of dev are in train too",
        "1 of 3 passages of dev are in train too",
        "dev has unanswerable questions and train has none: the model will always answer",
        "train: answers with white space around them, which is left out: 1",
        "dev: questions on an empty passage: 1",
    ]
