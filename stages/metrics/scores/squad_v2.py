"""Exact match and F1 as the official SQuAD v2.0 script defines them (Rajpurkar et al. 2018).

An answer is compared with each gold answer and the best counts. Both are lower-cased, stripped of
punctuation and of the articles a, an and the. Percentages.
"""

import re
import string
from collections import Counter
from collections.abc import Mapping, Sequence

from stages.corpus.squad import Question

SCALE = "percentage"

_ARTICLES = re.compile(r"\b(a|an|the)\b", re.UNICODE)
_PUNCTUATION = set(string.punctuation)


def score(questions: Sequence[Question], answers: Mapping[str, str]) -> dict[str, float]:
    """Score one answer a question, "" for no answer; a question without a prediction is not scored.

    `total` is the number of scored questions. HasAns_ and NoAns_ figures are present where the data
    has questions of that kind.
    """
    asked = [question for question in questions if question.id in answers]
    exact = {q.id: exact_match(golds(q), answers[q.id]) for q in asked}
    f1 = {q.id: overlap_f1(golds(q), answers[q.id]) for q in asked}
    result = _means(exact, f1, [q.id for q in asked])
    for prefix, has in (("HasAns", True), ("NoAns", False)):
        ids = [q.id for q in asked if bool(q.answers) == has]
        if ids:
            result |= {f"{prefix}_{name}": value for name, value in _means(exact, f1, ids).items()}
    return result


def golds(question: Question) -> list[str]:
    """The texts that count as right; only "" where the question has no answer."""
    return [answer.text for answer in question.answers if normalised(answer.text)] or [""]


def exact_match(gold: Sequence[str], answer: str) -> int:
    """1 where the answer is one of the gold answers after normalising, else 0."""
    return max(int(normalised(text) == normalised(answer)) for text in gold)


def overlap_f1(gold: Sequence[str], answer: str) -> float:
    """The best F1 of words in common with a gold answer, 0 to 1."""
    return max(_f1(normalised(text).split(), normalised(answer).split()) for text in gold)


def normalised(text: str) -> str:
    """Lower case, without punctuation, articles and extra white space."""
    kept = "".join(character for character in text.lower() if character not in _PUNCTUATION)
    return " ".join(_ARTICLES.sub(" ", kept).split())


def _f1(gold: list[str], answer: list[str]) -> float:
    if not gold or not answer:
        return float(gold == answer)
    common = sum((Counter(gold) & Counter(answer)).values())
    if common == 0:
        return 0.0
    precision, recall = common / len(answer), common / len(gold)
    return 2 * precision * recall / (precision + recall)


def _means(exact: Mapping[str, int], f1: Mapping[str, float], ids: Sequence[str]) -> dict[str, float]:
    total = len(ids)
    if total == 0:
        return {"total": 0}
    return {
        "exact": 100.0 * sum(exact[i] for i in ids) / total,
        "f1": 100.0 * sum(f1[i] for i in ids) / total,
        "total": total,
    }
