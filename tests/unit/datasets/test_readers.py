import json
from pathlib import Path

import pytest

from retrace.core.errors import InputError
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


def test_version_1_and_2_of_squad(tmp_path: Path) -> None:
    (question,) = read_questions(_write(tmp_path / "s", _squad()))
    assert question.answers[0].text == "Ada"
    (question,) = read_questions(_write(tmp_path / "s", _squad(answers=[], is_impossible=True)))
    assert question.answers == ()


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("", "f: the file is empty"),
        (b"sentence\tlabel\n\xff\t1\n", "f:2: byte 0xff is not UTF-8; save the file as UTF-8"),
        ("text\tlabel\na\t1\n", "f:2: no column 'sentence'; the header has: text, label"),
        ("sentence\tlabel\tlabel\na\t1\t0\n", "f:1: the header has the column 'label' twice"),
        ("sentence\tlabel\na\t1\tx\n", "f:2: 3 columns where the header has 2"),
        ("sentence\tlabel\na\t1\nb\t7\n", "f:3: label '7' is not allowed; expected 0 or 1"),
        ("sentence\tlabel\n \t1\n", "f:2: the sentence is empty"),
        ("sentence\tlabel\n", "f: no row below the header"),
    ],
)
def test_sentences_name_file_and_line(tmp_path: Path, content, message: str) -> None:
    with pytest.raises(InputError) as caught:
        read_sentences(_write(tmp_path / "f", content))
    assert str(caught.value).endswith(message)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("", "f: the file is empty"),
        ('{\n"data": [,]}', "f:2: not json: Expecting value at column 10"),
        (b'{"data":\n"\xe9"}', "f:2: byte 0xe9 is not UTF-8; save the file as UTF-8"),
        ("[" * 100_000, "f:1: not json: nested too deeply"),
        ('\n["\\ud800"]', "f:2: '\\ud800' is half of a character; save the file as UTF-8"),
        ("[]", "f: not SQuAD: the top level has no list called 'data'"),
        ('{"data": []}', "f: no question in it"),
        ('{"data": [{}]}', "f: article 1: no 'paragraphs' of type list"),
        (_squad(question=3), "f: question q1: no 'question' of type str"),
        (_squad(answers=[{"text": "Ada", "answer_start": 3}]), "question q1: the answer 'Ada' is not at character 3"),
        (_squad(answers=[{"text": "Ada", "answer_start": -8}]), "question q1: the answer 'Ada' is not at character -8"),
        (_squad(answers=[{"text": "Ada", "answer_start": True}]), "question q1: no 'answer_start' of type int"),
        (
            _squad(answers=[{"text": "", "answer_start": 3}]),
            "question q1: the answer '' is empty; a question without an answer has none",
        ),
        (
            _squad(answers=[{"text": " ", "answer_start": 3}]),
            "question q1: the answer ' ' is empty; a question without an answer has none",
        ),
        (
            _squad(is_impossible=True),
            "question q1: is_impossible is true, but there are answers",
        ),
        (
            _squad(is_impossible="false"),
            "question q1: is_impossible 'false' is not allowed; expected true or false",
        ),
        (
            _squad().replace("Yes Ada", "Yés Ada").replace('"answer_start": 4', '"answer_start": 5'),
            "'Ada' is not at character 5, but at that byte; expected the number of characters before it",
        ),
    ],
)
def test_questions_name_file_and_place(tmp_path: Path, content, message: str) -> None:
    with pytest.raises(InputError) as caught:
        read_questions(_write(tmp_path / "f", content))
    assert str(caught.value).endswith(message)


@pytest.mark.parametrize("text", [" Ada", "Ada ", " Ada "])
def test_white_space_about_an_answer_is_left_out(tmp_path: Path, text: str) -> None:
    start = "Yes Ada did.".index(text)
    (question,) = read_questions(_write(tmp_path / "s", _squad(answers=[{"text": text, "answer_start": start}])))
    assert question.answers == (Answer("Ada", 4),)


def test_an_id_that_occurs_twice(tmp_path: Path) -> None:
    document = json.loads(_squad())
    document["data"] *= 2
    with pytest.raises(InputError, match="question q1: the id occurs twice"):
        read_questions(_write(tmp_path / "f", json.dumps(document)))


@pytest.mark.parametrize("read", [read_sentences, read_questions, lambda path: list(read_documents(path))])
def test_a_missing_file(tmp_path: Path, read) -> None:
    with pytest.raises(InputError, match="nowhere: no such file"):
        read(tmp_path / "nowhere")


def test_text_without_text(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="no text in it"):
        list(read_documents(_write(tmp_path / "w", " \n\n \n")))
