"""squad_v2 against a plain restatement of what evaluate-v2.0.py defines, question by question in dictionaries."""

import random
import re
import string
from collections import Counter

import pytest

from retrace.datasets.squad import Answer, Question
from retrace.evaluation.metrics.squad_v2 import score
from retrace.evaluation.outcomes import answered

WORDS = "the The a Ada Lund 1601 in, hall. river's of A.I. x-ray Łódź İ ß 東京 — ... A\u00a0b e\u0301".split(" ")


def _made(number: int) -> Question:
    generator = random.Random(number)
    answers = tuple(Answer(" ".join(generator.choices(WORDS, k=3)), 0) for _ in range(number % 4))
    return Question(str(number), "T", "", "?", answers)


MADE = [_made(number) for number in range(40)]


def _clean(text: str) -> list[str]:
    bare = "".join("" if c in string.punctuation else c for c in text.lower())
    return re.sub(r"\b(a|an|the)\b", " ", bare).split()


def _one(question: Question, prediction: str) -> tuple[float, float]:
    exact, f1 = 0.0, 0.0
    said = _clean(prediction)
    for right in [words for words in (_clean(a.text) for a in question.answers) if words] or [[]]:
        exact = max(exact, float(right == said))
        same = sum(min(n, Counter(said)[word]) for word, n in Counter(right).items())
        if not right or not said:
            f1 = max(f1, float(right == said))
        elif same:
            f1 = max(f1, 2 * (same / len(said)) * (same / len(right)) / (same / len(said) + same / len(right)))
    return exact, f1


def official(
    questions: list[Question], predictions: dict[str, str], no_answer: dict[str, float], threshold: float
) -> dict[str, float]:
    by_id = {question.id: question for question in questions if question.id in predictions}
    has = {identifier: bool(question.answers) for identifier, question in by_id.items()}
    result: dict[str, float] = {}
    for which, name in enumerate(("exact_match", "f1")):
        raw = {i: _one(question, predictions[i])[which] for i, question in by_id.items()}
        kept = {i: float(not has[i]) if no_answer[i] > threshold else value for i, value in raw.items()}
        for prefix, ids in (
            ("", list(has)),
            ("HasAns_", [i for i in has if has[i]]),
            ("NoAns_", [i for i in has if not has[i]]),
        ):
            if ids:
                result[prefix + name] = 100.0 * sum(kept[i] for i in ids) / len(ids)
                result[prefix + "total"] = len(ids)
        current = best = sum(not answer for answer in has.values())
        best_threshold = 0.0
        for i in sorted(has, key=lambda i: no_answer[i]):
            current += raw[i] if has[i] else -1 if predictions[i] else 0
            if current > best:
                best, best_threshold = current, no_answer[i]
        result[f"best_{name}"], result[f"best_{name}_thresh"] = 100.0 * best / len(has), best_threshold
    return result


def _prediction(generator: random.Random, question: Question) -> str:
    words = (generator.choice(question.answers).text if question.answers else question.text).split()
    return generator.choice([
        "",
        " ".join(words).upper() + ".",
        " ".join(words[: generator.randrange(len(words) + 1)]),
        " ".join(generator.choices(WORDS, k=3)),
        " ".join([*generator.choices(WORDS, k=2), *words]),
    ])  # fmt: skip


@pytest.mark.parametrize("seed", range(200))
def test_random_predictions(seed: int) -> None:
    generator = random.Random(seed)
    questions = generator.sample(MADE, generator.randint(1, 12))
    predictions = {question.id: _prediction(generator, question) for question in questions}
    if generator.random() < 0.1:
        predictions = dict.fromkeys(predictions, "")
    if generator.random() < 0.2:
        predictions = dict(generator.sample(sorted(predictions.items()), generator.randint(1, len(predictions))))
    values = [0.0, 0.25, 0.5, 1.0] if generator.random() < 0.5 else [generator.gauss(0, 1) for _ in questions]
    no_answer = {question.id: generator.choice(values) for question in questions}
    threshold = generator.choice([0.0, 0.3, 1.0])
    outcome = answered(questions, predictions, no_answer, threshold)
    assert score(outcome) == pytest.approx(official(questions, predictions, no_answer, threshold), abs=1e-9)
