"""squad_v2 by hand and, on random answers, against a plain restatement of what evaluate-v2.0.py defines."""

import random
import re
import string
from collections import Counter

import numpy as np
import pytest

from retrace.datasets.squad import Answer, Question
from retrace.evaluation.metrics.squad_v2 import compare, resampled, score, threshold_curve
from retrace.evaluation.outcomes import Answered, answered

WORDS = "the The a Ada Lund 1601 in, hall. river's of A.I. x-ray Łódź İ ß 東京 — ... A\u00a0b e\u0301".split(" ")


ANSWERS = [
    (("The  Ada-Lund, an A.I.!",), "adalund ai", 1, 1.0),
    (("Écu", "theatre"), "a theatre", 1, 1.0),
    (("Écu", "theatre"), "écu", 1, 1.0),
    (("Ada Lund",), "Ada", 0, 2 / 3),
    (("Ada Lund", "Lund"), "lund", 1, 1.0),
    (("in 1601",), "the year 1601 was", 0, 0.4),
    (("red red blue",), "red blue blue", 0, 2 / 3),
    (("Ada",), "", 0, 0.0),
    ((), "", 1, 1.0),
    (("",), "Ada", 0, 0.0),
    (("Ada",), "the", 0, 0.0),
    (("the", "Ada"), "the", 0, 0.0),  # what is empty after normalising is no right answer
    (("the", "?"), "the", 1, 1.0),  # unless all are
]


@pytest.mark.parametrize(("gold", "answer", "exact", "f1"), ANSWERS)
def test_one_answer(gold: tuple[str, ...], answer: str, exact: int, f1: float) -> None:
    assert compare(gold, answer) == (exact, pytest.approx(f1))


def test_no_questions_have_no_figures() -> None:
    assert score(Answered((), ())) == {}


def test_the_best_threshold_by_hand() -> None:
    # Answered from the left: right, wrong where there is no answer, half right, an empty span.
    golds, spans = (("Ada",), (), ("1601 x y",), ()), ("Ada", "hall", "1601", "")
    outcome = Answered(golds, ("", "", "", ""), spans, np.array([-2.0, 0.5, 0.7, 3.0]))
    figures = score(outcome)
    assert figures["exact_match"] == 50.0
    assert figures["best_exact_match"] == figures["best_f1"] == 75.0  # 2 abstained rightly, 1 answered
    assert figures["best_exact_match_thresh"] == figures["best_f1_thresh"] == -2.0
    # With the first question twice and the second never, it pays to answer the third.
    weights = np.array([[2.0, 0.0, 1.0, 1.0]])
    assert resampled(outcome)(weights)["best_f1"] == pytest.approx([100 * (1 + 2 + 0.5) / 4])


def _made(number: int) -> Question:
    generator = random.Random(number)
    answers = tuple(Answer(" ".join(generator.choices(WORDS, k=3)), 0) for _ in range(number % 4))
    return Question(str(number), "", "?", answers)


Numbers = dict[str, float]  # by the question's id, or by name
MADE = [_made(number) for number in range(40)]


def _clean(text: str) -> list[str]:
    bare = "".join("" if c in string.punctuation else c for c in text.lower())
    return re.sub(r"\b(a|an|the)\b", " ", bare).split()


def _one(question: Question, prediction: str) -> tuple[float, float]:
    exact, f1 = 0.0, 0.0
    said = _clean(prediction)
    for right in [words for words in (_clean(a.text) for a in question.answers) if words] or [[]]:
        same = sum(min(n, Counter(said)[word]) for word, n in Counter(right).items())
        exact = max(exact, float(right == said))
        f1 = max(f1, 2 * same / (len(right) + len(said)) if right and said else float(right == said))
    return exact, f1


def official(questions: list[Question], predictions: dict[str, str], no_answer: Numbers, threshold: float) -> Numbers:
    by_id = {question.id: question for question in questions if question.id in predictions}
    has = {identifier: bool(question.answers) for identifier, question in by_id.items()}
    result: Numbers = {}
    for which, name in enumerate(("exact_match", "f1")):
        raw = {i: _one(question, predictions[i])[which] for i, question in by_id.items()}
        kept = {i: float(not has[i]) if no_answer[i] > threshold else value for i, value in raw.items()}
        for prefix, kinds in (("", (True, False)), ("HasAns_", (True,)), ("NoAns_", (False,))):
            if values := [value for i, value in kept.items() if has[i] in kinds]:
                result[prefix + name] = 100.0 * sum(values) / len(values)
                result[prefix + "total"] = len(values)
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
        "the",
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
    curve = threshold_curve([outcome])
    for place in (0, len(curve["threshold"]) // 2, -1):
        expected = official(questions, predictions, no_answer, curve["threshold"][place])
        assert expected | {name: curve[name][place] for name in ("exact_match", "f1")} == pytest.approx(expected)


def test_an_abstention_is_wrong_where_an_answer_has_no_words_left() -> None:
    """The only right answer, "A", is empty after normalising: an empty text is right, to abstain is not."""
    questions = [Question("1", "A b", "?", (Answer("A", 0),)), Question("2", "A b", "?", ())]
    spans = {"1": "", "2": "b"}
    for first, expected in ((-1.0, 100.0), (1.0, 50.0)):
        outcome = answered(questions, spans, {"1": first, "2": 1.0})
        for each in (outcome, outcome.part(np.array([True, True]))):
            assert score(each)["exact_match"] == score(each)["f1"] == expected
            assert resampled(each)(np.ones((1, 2)))["f1"].tolist() == [expected]
