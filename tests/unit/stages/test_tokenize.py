"""Which texts the tokenizer and the language model learn from."""

from pathlib import Path
from typing import Any

import pytest

from retrace.core.files import write_json, write_text
from retrace.core.paths import questions_path
from retrace.datasets.examples import SENTIMENTS, Example, TaskData, write_task
from retrace.datasets.text import PARTS, text_path
from retrace.tokens.settings import TokenizerSettings
from stages.tokenize import SOURCE, added_texts, training_texts

SENTENCE = "the hall was full and loud"


@pytest.fixture(autouse=True)
def _source(here: Path) -> None:
    """A data source whose splits have nothing in common."""
    for part in PARTS:
        write_text(text_path(SOURCE.text, part), f"text of {part}\n\nmore of {part}\n")
    rows = {
        part: [Example(f"{SENTENCE}{end} of {part}", None, 0) for end in ("", " songs")] for part in ("train", "dev")
    }
    rows["train"].append(Example("hall was full", None, 1))
    write_task(SOURCE.sst2, TaskData(SENTIMENTS, rows))
    for part in ("train", "dev"):
        qas = [{"id": part, "question": f"asked of {part}?", "answers": []}]
        document = {"data": [{"paragraphs": [{"context": f"passage of {part}", "qas": qas}]}]}
        write_json(questions_path(SOURCE.squad, part), document)


def _texts(**settings: Any) -> list[list[str]]:
    found = TokenizerSettings(**settings)
    return [list(documents) for documents in training_texts(found, added_texts(found))]


def test_they_are_those_of_the_training_splits_alone() -> None:
    """The running text first; what is held out for validation is not to be learned. A phrase is part of a sentence."""
    text, passages = ["text of train", "more of train"], ["passage of train"]
    sentences = [f"{SENTENCE} of train", f"{SENTENCE} songs of train"]
    assert _texts() == [text]
    assert _texts(train_on=("sst2", "squad", "text")) == [text, passages, sentences]
    assert _texts(train_on=("sst2",)) == [sentences]


def test_questions_are_read_with_their_passages_where_that_is_set() -> None:
    assert _texts(train_on=("squad",), with_questions=True) == [["asked of train? passage of train"]]
