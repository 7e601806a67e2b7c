"""Questions on passages in SQuAD's json, version 1.1 or 2.0."""

import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from typing import Any

from retrace.core.errors import InputError
from retrace.core.files import read_json

KINDS = {str: "text", int: "a whole number", list: "a list"}  # as messages call them
SENTENCE_END = re.compile(r"[.!?][\"')\]]*\s+(?![a-z])")  # also after an abbreviation, where one more part does no harm


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
    context: str
    text: str
    answers: tuple[Answer, ...]


def read_questions(path: Path) -> list[Question]:
    """Read all questions of a file.

    Raises FileNotFoundError if it is absent. Raises InputError if there is no question, if it is not json
    (naming line and column), and where a field or an answer's offset is wrong or an id occurs twice (naming the
    question, or the number of the article).
    """
    document = read_json(path)
    try:
        questions = _read(document)
    except InputError as error:
        raise InputError(f"{path}: {error}") from None
    if not questions:
        raise InputError(f"{path}: it contains no question")
    return questions


def _read(document: Any) -> list[Question]:
    if not isinstance(document, dict) or not isinstance(document.get("data"), list):
        raise InputError("not SQuAD: the top level has no list called 'data'")
    questions: dict[str, Question] = {}
    for number, article in enumerate(_objects("", document, "data"), start=1):
        where = f"article {number}: "
        for paragraph in _objects(where, article, "paragraphs"):
            context = _field(where, paragraph, "context", str)
            for qa in _objects(where, paragraph, "qas"):
                question = _question(where, context, qa)
                if question.id in questions:
                    raise InputError(f"question {question.id}: the id occurs twice")
                questions[question.id] = question
    return list(questions.values())


def _question(where: str, context: str, qa: dict[str, Any]) -> Question:
    identifier = _field(where, qa, "id", str)
    where = f"question {identifier}: "
    text = _field(where, qa, "question", str)
    impossible = qa.get("is_impossible")
    if not isinstance(impossible, bool | None):
        raise InputError(f"{where}is_impossible {impossible!r} is not allowed; expected true or false")
    if impossible and qa.get("answers"):
        raise InputError(f"{where}is_impossible is true, but there are answers")
    items = [] if impossible else _objects(where, qa, "answers")
    if impossible is False and not items:
        raise InputError(f"{where}is_impossible is false, but there are no answers")
    return Question(identifier, context, text.strip(), tuple(_answer(where, context, item) for item in items))


def _answer(where: str, context: str, item: dict[str, Any]) -> Answer:
    text, start = _field(where, item, "text", str), _field(where, item, "answer_start", int)
    if not text.strip():
        raise InputError(f"{where}the answer {text!r} is empty; an unanswerable question has no answers")
    if start < 0 or context[start : start + len(text)] != text:
        inside = context.encode(errors="replace")[max(0, start) :].startswith(text.encode(errors="replace"))
        counted = ", but at that byte; offsets count characters" if start >= 0 and inside else ""
        raise InputError(f"{where}the answer {text!r} is not at character {start}{counted}")
    # Few tokenizers have tokens for white space, so an answer that begins or ends in it may match no tokens.
    bare, at = stripped(text, start)
    return Answer(bare, at, bare != text)


def passages(questions: Iterable[Question], with_questions: bool = False) -> list[str]:
    """The distinct passages; `with_questions` puts each question before the sentence that its first answer begins in.

    Unanswerable questions come before the first sentence.
    """
    asked: dict[str, list[Question]] = {}
    for question in questions:
        asked.setdefault(question.context, []).append(question)
    return [_woven(*each) for each in asked.items()] if with_questions else list(asked)


def _woven(passage: str, questions: list[Question]) -> str:
    edges = {0, *(found.end() for found in SENTENCE_END.finditer(passage)), len(passage)}
    parts: list[str] = []
    for start, end in pairwise(sorted(edges)):
        here = range(start, end)
        parts += [each.text for each in questions if (each.answers[0].start if each.answers else 0) in here]
        parts.append(passage[start:end].strip())
    return " ".join(parts)


def stripped(text: str, start: int) -> tuple[str, int]:
    """A part of a passage without the white space around it, and the character at which it then starts."""
    return text.strip(), start + len(text) - len(text.lstrip())


def _objects(where: str, holder: dict[str, Any], name: str) -> list[dict[str, Any]]:
    found = _field(where, holder, name, list)
    for each in found:
        if not isinstance(each, dict):
            raise InputError(f"{where}{name!r} holds {each!r:.40}; expected objects")
    return found


def _field(where: str, holder: dict[str, Any], name: str, kind: type) -> Any:
    if name not in holder:
        raise InputError(f"{where}no {name!r}; expected {KINDS[kind]}")
    value = holder[name]
    if not isinstance(value, kind) or isinstance(value, bool):
        raise InputError(f"{where}{name} {value!r:.40} is not allowed; expected {KINDS[kind]}")
    return value
