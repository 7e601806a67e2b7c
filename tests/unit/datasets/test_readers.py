"""What readers make of right files; tests/campaigns has the wrong ones."""

import json
from pathlib import Path

import pytest

from retrace.core.errors import InputError
from retrace.core.files import parse_json
from retrace.core.paths import questions_path
from retrace.datasets.examples import Example, read_sentences
from retrace.datasets.squad import Answer, Question, passages, read_questions
from retrace.datasets.text import read_documents, read_table
from tests.tiny import tiny_questions


def _write(path: Path, content: str) -> Path:
    path.write_text(content)
    return path


def test_wikitext_articles_hold_their_sections(tmp_path: Path) -> None:
    text = " \n = Ada = \n \n First . \n = = Life = = \n \n Second . \n \n = Bob = \n \n Third . \n"
    documents = list(read_documents(_write(tmp_path / "w", text)))
    assert documents == ["= Ada =\nFirst .\n= = Life = =\nSecond .", "= Bob =\nThird ."]


def test_plain_text_is_cut_at_empty_lines(tmp_path: Path) -> None:
    assert list(read_documents(_write(tmp_path / "w", "One\ntwo\n\n\nThree\n"))) == ["One\ntwo", "Three"]


def test_columns_are_found_by_name_in_any_order(tmp_path: Path) -> None:
    path = _write(tmp_path / "t", "index\tlabel\tsentence\n0\t1\tgood .\n1\t0\tbad .\n")
    assert read_sentences(path) == [Example("good .", None, 1), Example("bad .", None, 0)]


@pytest.mark.timeout(60)  # hours, if each name were looked for among all
def test_a_repeated_name_among_many_is_found_at_once(tmp_path: Path) -> None:
    names = [*(f"c{number}" for number in range(200_000)), "last", "last"]
    (tmp_path / "a.tsv").write_text("\t".join(names))
    with pytest.raises(InputError, match=r"a\.tsv:1: the header has the column 'last' twice$"):
        list(read_table(tmp_path / "a.tsv"))
    with pytest.raises(InputError, match=r"^a\.json:1: not json: the key 'last' occurs twice in an object$"):
        parse_json("{" + ", ".join(f'"{name}": 0' for name in names) + "}", Path("a.json"))


@pytest.mark.parametrize("text", [" Ada", "Ada "])
def test_white_space_about_an_answer_is_left_out(tmp_path: Path, text: str) -> None:
    source = tiny_questions(tmp_path, "Yes Ada did.", {"Who?": text})
    (question,) = read_questions(questions_path(source, "dev"))
    assert question.answers == (Answer("Ada", 4),)


def test_questions_come_before_the_sentence_of_their_answer() -> None:
    first, other = 'Ada met Bob. (Bob sang!) "Ever since," e.g. then, Eve wept. ', "Dan"

    def question(text: str, passage: str, *starts: int) -> Question:
        return Question(text, passage, text, tuple(Answer(passage[at : at + 3], at) for at in starts))

    asked = [
        question("Who wept?", first, first.index("Eve"), 0),
        question("Who was met?", first, first.index("Bob")),
        question("Who else?", other, 0),
        question("Who met?", first, 0),
        question("Why?", first),
    ]
    assert passages(asked) == [first, other]
    assert passages(asked, with_questions=True) == [
        'Who was met? Who met? Why? Ada met Bob. (Bob sang!) Who wept? "Ever since," e.g. then, Eve wept.',
        "Who else? Dan",
    ]


def test_a_wrong_question_beside_deep_nesting_is_named(tmp_path: Path) -> None:
    qa = {"id": "q", "question": "Who?", "answers": [{"text": "Ada", "answer_start": 3}]}
    data = json.dumps([{"paragraphs": [{"context": "Ada met Bob", "qas": [qa]}]}])
    path = _write(tmp_path / "a.json", f'{{"deep": {"[" * 600}{"]" * 600}, "data": {data}}}')
    with pytest.raises(InputError, match=r"a\.json:.* question q: "):
        read_questions(path)
