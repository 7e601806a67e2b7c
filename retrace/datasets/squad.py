"""Questions on passages in SQuAD's json, version 1.1 or 2.0."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from retrace.core.errors import InputError
from retrace.datasets.text import numbered_lines, parse_json


@dataclass(frozen=True)
class Answer:
    """An answer's text without surrounding white space, and the character of the passage where it starts."""

    text: str
    start: int


@dataclass(frozen=True)
class Question:
    """A question on a passage; no answers means that the passage does not answer it."""

    id: str
    title: str
    context: str
    text: str
    answers: tuple[Answer, ...]


def read_questions(path: Path) -> list[Question]:
    """Read all questions of a file.

    Raises InputError naming the file, and the line or the question, where json, a field or an answer's offset is wrong,
    an id occurs twice or there is no question.
    """
    document = read_json_file(path)
    if not isinstance(document, dict) or not isinstance(document.get("data"), list):
        raise InputError(f"{path}: not SQuAD: the top level has no list called 'data'")
    questions: dict[str, Question] = {}
    for question in _questions(path, document["data"]):
        if question.id in questions:
            raise InputError(f"{path}: question {question.id}: the id occurs twice")
        questions[question.id] = question
    if not questions:
        raise InputError(f"{path}: no question in it")
    return list(questions.values())


def read_json_file(path: Path) -> Any:
    """Read any json file.

    Raises InputError naming file and line where it is missing, empty, not UTF-8 or not json.
    """
    return parse_json("\n".join(line for _, line in numbered_lines(path)), path)


def _questions(path: Path, articles: list[Any]) -> Iterator[Question]:
    for number, article in enumerate(articles):
        where = f"article {number + 1}"
        title = article.get("title", "") if isinstance(article, dict) else ""
        for paragraph in _field(path, where, article, "paragraphs", list):
            context = _field(path, where, paragraph, "context", str)
            for qa in _field(path, where, paragraph, "qas", list):
                yield _question(path, where, title, context, qa)


def _question(path: Path, where: str, title: str, context: str, qa: Any) -> Question:
    identifier = _field(path, where, qa, "id", str)
    where = f"question {identifier}"
    text = _field(path, where, qa, "question", str)
    impossible = qa.get("is_impossible")
    if not isinstance(impossible, bool | None):
        raise InputError(f"{path}: {where}: is_impossible {impossible!r} is not allowed; expected true or false")
    if impossible and qa.get("answers"):
        raise InputError(f"{path}: {where}: is_impossible is true, but there are answers")
    items = [] if impossible else _field(path, where, qa, "answers", list)
    return Question(
        identifier, title, context, text.strip(), tuple(_answer(path, where, context, item) for item in items)
    )


def _answer(path: Path, where: str, context: str, item: Any) -> Answer:
    text, start = _field(path, where, item, "text", str), _field(path, where, item, "answer_start", int)
    if not text.strip():
        raise InputError(f"{path}: {where}: the answer {text!r} is empty; a question without an answer has none")
    if start < 0 or context[start : start + len(text)] != text:
        inside = context.encode(errors="replace")[max(0, start) :].startswith(text.encode(errors="replace"))
        counted = ", but at that byte; expected the number of characters before it" if start >= 0 and inside else ""
        raise InputError(f"{path}: {where}: the answer {text!r} is not at character {start}{counted}")
    # No token covers surrounding white space, so the answer would not match any tokens.
    return Answer(text.strip(), start + len(text) - len(text.lstrip()))


def _field(path: Path, where: str, holder: Any, name: str, kind: type) -> Any:
    value = holder.get(name) if isinstance(holder, dict) else None
    if not isinstance(value, kind) or isinstance(value, bool):
        raise InputError(f"{path}: {where}: no {name!r} of type {kind.__name__}")
    return value
