"""METEOR, BLEU and ROUGE: what their libraries say, and every score of questions for weights of them."""

import math
from types import ModuleType
from typing import Any

import nltk
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from nltk.corpus import LazyCorpusLoader, WordNetCorpusReader
from rouge_score.rouge_scorer import RougeScorer
from sacrebleu.metrics.bleu import BLEU

from stages.metrics.outcomes import Answered
from stages.metrics.scores import bleu, meteor, rouge, squad_v2

SCORES = [squad_v2, meteor, bleu, rouge]
TEXT = st.lists(st.sampled_from("the Ada Lund built mills , milling in 1601 .".split()), min_size=1, max_size=7).map(
    " ".join
)
ANSWER = st.one_of(st.just(""), TEXT)


@st.composite
def outcomes(draw: Any) -> Answered:
    golds = draw(st.lists(st.lists(TEXT, max_size=3).map(tuple), min_size=1, max_size=12))
    count = len(golds)
    answers, spans = (tuple(draw(st.lists(ANSWER, min_size=count, max_size=count))) for _ in range(2))
    if draw(st.booleans()):
        return Answered(tuple(golds), answers)
    numbers = draw(st.lists(st.sampled_from([-1.5, 0.0, 0.25, 3.0]), min_size=count, max_size=count))
    return Answered(tuple(golds), answers, spans, np.array(numbers))


def _repeated(outcome: Answered, weights: list[int]) -> Answered:
    places = np.repeat(np.arange(len(weights)), weights)
    return Answered(
        tuple(outcome.golds[place] for place in places),
        tuple(outcome.answers[place] for place in places),
        outcome.spans and tuple(outcome.spans[place] for place in places),
        None if outcome.no_answer is None else outcome.no_answer[places],
    )


def _resampled_names(score: ModuleType, figures: dict[str, float]) -> set[str]:
    return {name for name in figures if score.FIGURES[name].scale != "count" and not name.endswith("_thresh")}


@pytest.mark.parametrize("score", SCORES, ids=lambda score: score.__name__)
@given(outcome=outcomes(), data=st.data())
@settings(deadline=None)
def test_weights_are_repetitions(score: ModuleType, outcome: Answered, data: st.DataObject) -> None:
    count = len(outcome.answers)
    drawn = data.draw(st.lists(st.integers(0, 3), min_size=count, max_size=count).filter(any))
    figures = score.resampled(outcome)(np.array([[1.0] * count, drawn]))
    for row, weights in enumerate(([1] * count, drawn)):
        expected = score.score(_repeated(outcome, weights))
        for name, values in figures.items():
            assert values.shape == (2,)
            # A resample without questions of the kind has no such figure.
            wanted = expected.get(name, math.nan)
            assert values[row] == pytest.approx(wanted, abs=1e-9, nan_ok=True), name
    assert set(figures) == _resampled_names(score, score.score(outcome))


@given(outcome=outcomes())
@settings(deadline=None)
def test_bleu_is_what_sacrebleu_says(outcome: Answered) -> None:
    pairs = [(answer, golds) for answer, golds in zip(outcome.answers, outcome.golds, strict=True) if golds]
    if not pairs:
        assert bleu.score(outcome) == bleu.notes(outcome) == {}
        return
    most = max(len(golds) for _, golds in pairs)
    columns = [[golds[n] if n < len(golds) else None for _, golds in pairs] for n in range(most)]
    metric = BLEU()
    expected = metric.corpus_score([answer for answer, _ in pairs], columns)  # pyright: ignore[reportArgumentType]
    assert bleu.score(outcome) == {
        "bleu": expected.score, "bleu_precision_1": expected.precisions[0], "bleu_precision_2": expected.precisions[1],
        "bleu_precision_3": expected.precisions[2], "bleu_precision_4": expected.precisions[3],
        "bleu_brevity_penalty": expected.bp, "bleu_length_ratio": expected.ratio,
        "bleu_length": expected.sys_len, "bleu_reference_length": expected.ref_len,
    }  # fmt: skip
    assert bleu.notes(outcome) == {"bleu_signature": str(metric.get_signature())}


@given(outcome=outcomes())
@settings(deadline=None)
def test_rouge_is_what_rouge_score_says(outcome: Answered) -> None:
    scorer = RougeScorer(["rouge1", "rougeL"])
    rows = [
        scorer.score_multi(list(golds), answer)
        for answer, golds in zip(outcome.answers, outcome.golds, strict=True)
        if golds
    ]
    figures = rouge.score(outcome)
    assert set(figures) == (set(rouge.NAMES) if rows else set())
    for name in ("rouge1", "rougeL"):
        if rows:
            assert figures[name] == pytest.approx(np.mean([row[name].fmeasure for row in rows]))


def test_rouge_by_hand() -> None:
    # Of "Ada built mills" two words of three are right and both of "Ada mills": 2·(2/3)·1 / (2/3 + 1).
    figures = rouge.score(Answered((("x", "Ada mills"), ()), ("Ada built mills", "Ada")))
    assert figures == pytest.approx({"rouge1": 0.8, "rouge2": 0.0, "rougeL": 0.8, "rougeLsum": 0.8})


@pytest.fixture
def without_wordnet(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(nltk.data, "path", [])
    monkeypatch.setattr(meteor, "wordnet", LazyCorpusLoader("wordnet", WordNetCorpusReader, None))


@pytest.mark.usefixtures("without_wordnet")
def test_meteor_by_hand() -> None:
    # "milling" has the stem of "mills": two of two words match, in one chunk: 1 - (1/2)·(1/2)³.
    outcome = Answered((("nothing", "Ada mills"), ()), ("Ada milling", "Ada"))
    assert meteor.score(outcome) == pytest.approx({"meteor_exact_stem": 1 - 0.5 * 0.5**3})


@pytest.mark.usefixtures("without_wordnet")
def test_meteor_without_wordnet_says_so_by_its_name() -> None:
    outcome = Answered((("car",),), ("auto",))
    assert meteor.score(outcome) == {"meteor_exact_stem": 0.0}
    assert set(meteor.resampled(outcome)(np.ones((1, 1)))) == {"meteor_exact_stem"}
