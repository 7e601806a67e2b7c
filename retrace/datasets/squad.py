"""Questions on passages in SQuAD's json, version 1.1 or 2.0."""

import json
from contextlib import suppress
from dataclasses import dataclass, field
from json import scanner
from json.decoder import JSONObject  # pyright: ignore[reportAttributeAccessIssue] - not in its stubs
from pathlib import Path
from typing import Any

from retrace.core.errors import InputError
from retrace.core.files import parse_json, read_text


@dataclass(frozen=True)
class Answer:
    """An answer's text without surrounding white space, and its offset in the passage, in characters."""

    text: str
    start: int
    was_stripped: bool = field(default=False, compare=False)


@dataclass(frozen=True)
class Question:
    """A question on a passage; it is unanswerable if it has no answers."""

    id: str
    title: str
    context: str
    text: str
    answers: tuple[Answer, ...]


class _Wrong(Exception):  # noqa: N818 - becomes an InputError, which also names the place
    """What is wrong, and the json object in which it is."""


def read_questions(path: Path) -> list[Question]:
    """Read all questions of a file.

    Raises FileNotFoundError where it is absent. Raises InputError where there is no question, and, naming file, line
    and column, where the json, a field or an answer's offset is wrong or an id occurs twice.
    """
    text = read_text(path)
    try:
        questions = _read(parse_json(text, path))
    except _Wrong as wrong:
        said = f" {wrong.args[0]}"
        with suppress(RecursionError):  # the parser that knows the place takes more of the stack
            said = _where_wrong(text)
        raise InputError(f"{path}:{said}") from None
    if not questions:
        raise InputError(f"{path}: it contains no question")
    return questions


def _where_wrong(text: str) -> str:
    """Line, column and message; parses the text again with a much slower parser, which knows where objects begin."""
    begins: dict[int, int] = {}  # offset of each object, by its `id()`

    def located(place: tuple[str, int], *how: Any) -> tuple[Any, int]:
        found, end = JSONObject(place, *how)
        begins[id(found)] = place[1] - 1
        return found, end

    decoder: Any = json.JSONDecoder()
    decoder.parse_object = located
    decoder.scan_once = scanner.py_make_scanner(decoder)  # pyright: ignore[reportAttributeAccessIssue] - nor this
    document = decoder.decode(text)
    try:
        _read(document)
    except _Wrong as wrong:
        message, holder = wrong.args
        at = begins.get(id(holder), 0)
        return f"{text.count(chr(10), 0, at) + 1}:{at - text.rfind(chr(10), 0, at)}: {message}"
    raise AssertionError("unreachable: the first parser has refused the same text")


def _read(document: Any) -> list[Question]:
    if not isinstance(document, dict) or not isinstance(document.get("data"), list):
        raise _Wrong("not SQuAD: the top level has no list called 'data'", document)
    questions: dict[str, Question] = {}
    for number, article in enumerate(_objects("", document, "data"), start=1):
        where = f"article {number}: "
        title = article.get("title", "")
        if not isinstance(title, str | None):
            raise _Wrong(f"{where}title {title!r} is not allowed; expected text", article)
        for paragraph in _objects(where, article, "paragraphs"):
            context = _field(where, paragraph, "context", str)
            for qa in _objects(where, paragraph, "qas"):
                question = _question(where, title or "", context, qa)
                if question.id in questions:
                    raise _Wrong(f"question {question.id}: the id occurs twice", qa)
                questions[question.id] = question
    return list(questions.values())


def _question(where: str, title: str, context: str, qa: dict[str, Any]) -> Question:
    identifier = _field(where, qa, "id", str)
    where = f"question {identifier}: "
    text = _field(where, qa, "question", str)
    impossible = qa.get("is_impossible")
    if not isinstance(impossible, bool | None):
        raise _Wrong(f"{where}is_impossible {impossible!r} is not allowed; expected true or false", qa)
    if impossible and qa.get("answers"):
        raise _Wrong(f"{where}is_impossible is true, but there are answers", qa)
    items = [] if impossible else _objects(where, qa, "answers")
    return Question(identifier, title, context, text.strip(), tuple(_answer(where, context, item) for item in items))


def _answer(where: str, context: str, item: dict[str, Any]) -> Answer:
    text, start = _field(where, item, "text", str), _field(where, item, "answer_start", int)
    if not text.strip():
        raise _Wrong(f"{where}the answer {text!r} is empty; an unanswerable question has no answers", item)
    if start < 0 or context[start : start + len(text)] != text:
        inside = context.encode(errors="replace")[max(0, start) :].startswith(text.encode(errors="replace"))
        counted = ", but at that byte; offsets count characters" if start >= 0 and inside else ""
        raise _Wrong(f"{where}the answer {text!r} is not at character {start}{counted}", item)
    # No token covers white space, so an answer that begins or ends in it would match no tokens.
    bare = text.strip()
    return Answer(bare, start + len(text) - len(text.lstrip()), bare != text)


def _objects(where: str, holder: dict[str, Any], name: str) -> list[dict[str, Any]]:
    found = _field(where, holder, name, list)
    for each in found:
        if not isinstance(each, dict):
            raise _Wrong(f"{where}{name!r} holds {each!r:.40}; expected objects", holder)
    return found


def _field(where: str, holder: dict[str, Any], name: str, kind: type) -> Any:
    value = holder.get(name)
    if not isinstance(value, kind) or isinstance(value, bool):
        raise _Wrong(f"{where}no {name!r} of type {kind.__name__}", holder)
    return value
