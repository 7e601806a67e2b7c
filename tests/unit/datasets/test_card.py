import json
from pathlib import Path
from typing import Any

from retrace.core.paths import questions_path, running_text, sentences_path
from retrace.datasets.card import make_card
from retrace.datasets.text import PARTS, text_path

PASSAGE = "Ada Lund founded the guild in Thorndel."


def _qa(number: int, question: str = "Who?") -> dict[str, Any]:
    answers = [{"text": "Ada Lund", "answer_start": 0}]
    return {"id": f"q{number}", "question": question, "answers": answers}


def _card(folder: Path, sentences: dict[str, list[str]], asked: dict[str, list[dict[str, Any]]]) -> dict[str, Any]:
    for path in (running_text(folder), sentences_path(folder, "").parent, questions_path(folder, "").parent):
        path.mkdir(parents=True)
    for part in PARTS:
        text_path(running_text(folder), part).write_text("One paragraph.\n")
    for part, texts in sentences.items():
        rows = "".join(f"{text}\t{number % 2}\n" for number, text in enumerate(texts))
        sentences_path(folder, part).write_text(f"sentence\tlabel\n{rows}")
    for part, qas in asked.items():
        document = {"data": [{"paragraphs": [{"context": PASSAGE, "qas": qas}]}]}
        questions_path(folder, part).write_text(json.dumps(document))
    return make_card(folder)


def test_what_splits_share_is_counted_by_rows(tmp_path: Path) -> None:
    sentences = {
        "train": ["a good film that I saw twice", "Stale ale ."],
        "dev": ["stale  ale.", "STALE ALE .", "a good film", "not seen by anyone"],
    }
    asked = {"train": [_qa(0, "Who founded it?"), _qa(1)], "dev": [_qa(2, "who founded it ?"), _qa(3, "What?")]}
    card = _card(tmp_path, sentences, asked)
    assert card["findings"] == [
        "sst2: 2 of 4 sentences of dev are in train too",
        "sst2: 3 of 4 sentences of dev are part of a training text, or one makes up half of their words or more",
        "squad: 1 of 2 questions of dev are in train too",
        "squad: 1 of 1 passages of dev are in train too",
    ]
    assert (card["sst2"]["shared_between_splits"], card["sst2"]["given_away"]) == (2, 3)
    assert (card["squad"]["shared_between_splits"], card["squad"]["shared_passages"]) == (1, 1)


def test_odd_questions_are_counted(tmp_path: Path) -> None:
    sentences = {"train": ["good", "bad"], "dev": ["long", '"a ""short"" one"', '"as it is"']}
    asked = {"train": [_qa(0), _qa(1)], "dev": [_qa(2, question=" ")]}
    findings = _card(tmp_path, sentences, asked)["findings"]
    assert "squad: 1 questions of dev have no text" in findings
    assert "sst2: 1 sentences of dev are quoted as in csv; the quotes are read as text" in findings


def test_a_test_split_is_counted_and_what_it_shares(tmp_path: Path) -> None:
    sentences = {"train": ["b", "a"], "dev": ["c"], "test": ["c", "a", "d"]}
    card = _card(tmp_path, sentences, {"train": [_qa(0, "Who?")], "dev": [_qa(1, "What?")]})
    assert card["sst2"]["test"] == {"sentences": 3, "favourable": 1}
    assert [finding for finding in card["findings"] if finding.startswith("sst2")] == [
        "sst2: 1 of 3 sentences of test are in train too", "sst2: 1 of 3 sentences of test are in dev too"
    ]  # fmt: skip
    assert set(card["squad"]) == {"train", "dev", "shared_between_splits", "shared_passages"}
