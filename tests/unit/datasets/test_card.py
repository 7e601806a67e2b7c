from pathlib import Path
from typing import Any

from retrace.core.files import write_json, write_text
from retrace.core.paths import questions_path, running_text, sentences_path
from retrace.datasets.card import make_card
from retrace.datasets.text import PARTS, text_path

PASSAGE, ANSWER = "Ada Lund founded the guild in Thorndel.", {"text": "Ada Lund", "answer_start": 0}


def _card(folder: Path, sentences: dict[str, list[str]], asked: dict[str, list[str]]) -> dict[str, Any]:
    """The card of a source with these sentences, of alternating labels, and questions."""
    for part in PARTS:
        write_text(text_path(running_text(folder), part), "One paragraph.\n")
    for part, texts in sentences.items():
        rows = "".join(f"{text}\t{number % 2}\n" for number, text in enumerate(texts))
        write_text(sentences_path(folder, part), f"sentence\tlabel\n{rows}")
    for part, questions in asked.items():
        qas = [{"id": str(number), "question": asked, "answers": [ANSWER]} for number, asked in enumerate(questions)]
        write_json(questions_path(folder, part), {"data": [{"paragraphs": [{"context": PASSAGE, "qas": qas}]}]})
    return make_card(folder)


def test_what_splits_share_is_counted_by_rows(tmp_path: Path) -> None:
    train = ["a good film that I saw twice", "Stale ale ."]
    dev = ["stale  ale.", "STALE ALE .", "a good film", "not seen by anyone"]
    asked = {"train": ["Who founded it?", "Who?"], "dev": ["who founded it ?", "What?"]}
    card = _card(tmp_path, {"train": train, "dev": dev}, asked)
    assert card["findings"] == [
        "sst2: 2 of 4 sentences of dev are in train too",
        "sst2: 3 of 4 sentences of dev are part of a training text, or one makes up half of their words or more",
        "squad: 1 of 2 questions of dev are in train too",
        "squad: 1 of 1 passages of dev are in train too",
    ]
    assert (card["sst2"]["shared_between_splits"], card["sst2"]["given_away"]) == (2, 3)
    assert (card["squad"]["shared_between_splits"], card["squad"]["shared_passages"]) == (1, 1)


def test_a_test_split_is_counted_and_what_it_shares_and_what_is_odd(tmp_path: Path) -> None:
    sentences = {"train": ["b", "a"], "dev": ["c", '"a ""short"" one"', '"as it is"'], "test": ["c", "a", "d"]}
    card = _card(tmp_path, sentences, {"train": ["Who?"], "dev": [" "]})
    assert card["sst2"]["test"] == {"sentences": 3, "favourable": 1}
    assert card["findings"] == [
        "sst2: 1 of 3 sentences of test are in train too",
        "sst2: 1 of 3 sentences of test are in dev too",
        "sst2: 1 sentences of dev are quoted as in csv; the quotes are read as text",
        "squad: 1 of 1 passages of dev are in train too",
        "squad: 1 questions of dev have no text",
    ]
    assert set(card["squad"]) == {"train", "dev", "shared_between_splits", "shared_passages"}
