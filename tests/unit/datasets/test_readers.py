"""What readers make of right files; tests/campaigns has the wrong ones."""

import json
from pathlib import Path

import pytest

from retrace.datasets.examples import Example, read_sentences
from retrace.datasets.squad import Answer, read_questions
from retrace.datasets.text import read_documents


def _write(path: Path, content: str | bytes) -> Path:
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return path


def _squad(**changes) -> str:
    qa = {"id": "q1", "question": "Who?", "answers": [{"text": "Ada", "answer_start": 4}], **changes}
    return json.dumps({"data": [{"title": "T", "paragraphs": [{"context": "Yes Ada did.", "qas": [qa]}]}]})


def test_wikitext_articles_hold_their_sections(tmp_path: Path) -> None:
    text = " \n = Ada = \n \n First . \n = = Life = = \n \n Second . \n \n = Bob = \n \n Third . \n"
    documents = list(read_documents(_write(tmp_path / "w", text)))
    assert documents == ["= Ada =\nFirst .\n= = Life = =\nSecond .", "= Bob =\nThird ."]


def test_plain_text_is_cut_at_empty_lines(tmp_path: Path) -> None:
    assert list(read_documents(_write(tmp_path / "w", "One\ntwo\n\n\nThree\n"))) == ["One\ntwo", "Three"]


def test_columns_are_found_by_name_in_any_order(tmp_path: Path) -> None:
    path = _write(tmp_path / "t", "index\tlabel\tsentence\n0\t1\tgood .\n1\t0\tbad .\n")
    assert read_sentences(path) == [Example("good .", None, 1), Example("bad .", None, 0)]


@pytest.mark.parametrize("text", [" Ada", "Ada ", " Ada "])
def test_white_space_about_an_answer_is_left_out(tmp_path: Path, text: str) -> None:
    start = "Yes Ada did.".index(text)
    (question,) = read_questions(_write(tmp_path / "s", _squad(answers=[{"text": text, "answer_start": start}])))
    assert question.answers == (Answer("Ada", 4),)
