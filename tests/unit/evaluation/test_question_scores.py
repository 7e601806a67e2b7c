"""METEOR, BLEU and ROUGE: what their libraries say, and every score of questions for weights of them."""

import math
from itertools import zip_longest
from types import ModuleType, SimpleNamespace
from typing import Any

import nltk
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from nltk.corpus import LazyCorpusLoader, WordNetCorpusReader
from nltk.translate.bleu_score import sentence_bleu
from rouge_score.rouge_scorer import RougeScorer
from sacrebleu.metrics.bleu import BLEU
from sacrebleu.tokenizers.tokenizer_13a import Tokenizer13a

from retrace.evaluation.metrics import bleu, meteor, rouge, squad_v2
from retrace.evaluation.outcomes import Answered, Scoring, figures
from retrace.statistics.intervals import intervals

SCORES = [squad_v2, meteor, bleu, rouge]
WORDS = "the Ada Lund built mills , milling in 1601 . Łódź 東京の İ ß 🙂 don't e\u0301 A.I. \u200b -".split()
SAID = [st.lists(st.sampled_from(words), min_size=1, max_size=7).map(" ".join) for words in (WORDS[:10], WORDS)]
ODD = st.sampled_from([" ", "the", "...", "Ada\nLund", "\u00a0Ada\u2009Lund", "1,601.5%", "&lt;skipped&gt;"])
TEXT = st.one_of(*SAID, ODD)
ANSWER = st.one_of(st.just(""), TEXT)


@st.composite
def outcomes(draw: Any) -> Answered:
    golds = draw(st.lists(st.lists(TEXT, max_size=3).map(tuple), min_size=1, max_size=12))
    count = len(golds)
    answer = draw(st.sampled_from([ANSWER, ANSWER, ANSWER, st.just("")]))
    answers, spans = (tuple(draw(st.lists(answer, min_size=count, max_size=count))) for _ in range(2))
    if draw(st.booleans()):
        return Answered(tuple(golds), answers)
    numbers = draw(st.lists(st.sampled_from([-1.5, 0.0, 0.25, 3.0]), min_size=count, max_size=count))
    return Answered(tuple(golds), answers, spans, np.array(numbers))


def _repeated(outcome: Answered, weights: list[int]) -> Answered:
    places = np.repeat(np.arange(len(weights)), weights).tolist()
    texts: Any = (outcome.golds, outcome.answers, outcome.spans)
    golds, answers, spans = (of and tuple(of[place] for place in places) for of in texts)
    return Answered(golds, answers, spans, None if outcome.no_answer is None else outcome.no_answer[places])


def _asked(outcome: Answered) -> list[tuple[str, tuple[str, ...]]]:
    """The answers and the right ones, of the questions that have an answer."""
    return [(answer, golds) for answer, golds in zip(outcome.answers, outcome.golds, strict=True) if golds]


def _words(text: str) -> list[str]:
    return Tokenizer13a()(text.rstrip()).split()


@pytest.mark.parametrize("score", SCORES, ids=lambda score: score.__name__)
@given(outcome=outcomes(), data=st.data())
def test_weights_are_repetitions(score: ModuleType, outcome: Answered, data: st.DataObject) -> None:
    count = len(outcome.answers)
    drawn = data.draw(st.lists(st.integers(0, 3), min_size=count, max_size=count).filter(any))
    resampled = score.resampled(outcome)(np.array([[1.0] * count, drawn]))
    for row, weights in enumerate(([1] * count, drawn)):
        expected = figures(score, _repeated(outcome, weights))
        for name, values in resampled.items():
            assert values.shape == (2,)
            # A resample without questions of the kind has no such figure.
            assert values[row] == pytest.approx(expected.get(name, math.nan), abs=1e-9, nan_ok=True), name
    counts = {name for name, figure in score.FIGURES.items() if figure.scale == "count" or name.endswith("_thresh")}
    assert set(resampled) == figures(score, outcome).keys() - counts


@given(outcome=outcomes())
@settings(max_examples=200)
def test_bleu_is_what_sacrebleu_says(outcome: Answered) -> None:
    pairs = _asked(outcome)
    if not pairs:
        assert figures(bleu, outcome) == bleu.notes(outcome) == {}
        return
    metric, columns = BLEU(), [*zip_longest(*(golds for _, golds in pairs))]
    expected = metric.corpus_score([answer for answer, _ in pairs], columns)  # pyright: ignore[reportArgumentType]
    found, whole = figures(bleu, outcome), {"bleu": min(100.0, expected.score), "bleu_brevity_penalty": expected.bp}
    whole |= {f"bleu_precision_{n}": value for n, value in enumerate(expected.precisions, start=1)}
    whole |= {"bleu_length_ratio": expected.ratio, "bleu_length": expected.sys_len}
    assert found == {**whole, "bleu_reference_length": expected.ref_len, "bleu_sentence": found["bleu_sentence"]}
    assert bleu.notes(outcome) == {"bleu_signature": str(metric.get_signature())}


@given(outcome=outcomes())
@settings(max_examples=200)
@pytest.mark.filterwarnings("ignore:\\nThe hypothesis contains 0 counts:UserWarning")
def test_the_mean_bleu_of_answers_is_what_nltk_says(outcome: Answered) -> None:
    rows = [sentence_bleu([*map(_words, golds)], _words(answer)) for answer, golds in _asked(outcome)]
    if rows:
        expected = 100.0 * float(np.mean(rows))
        assert figures(bleu, outcome)["bleu_sentence"] == pytest.approx(expected, rel=1e-9, abs=0)


def test_an_interval_of_a_ratio_of_lengths_stays_above_0() -> None:
    """One seed answers all questions, the other none: by Student's interval of two seeds, from -5.9 to 6.9."""
    right = ("Ada",) * 20
    both = {text: Answered(tuple((gold,) for gold in right), (text,) * 20) for text in ("Ada", "")}
    interval = intervals([*Scoring(("bleu",)).scored(both, 100, 1).values()])["bleu_length_ratio"]
    assert interval["low"] == 0 < 6 < interval["high"]


@given(outcome=outcomes())
@settings(max_examples=200)
def test_rouge_is_what_rouge_score_says(outcome: Answered) -> None:
    scorer = RougeScorer(rouge.NAMES)
    rows = [scorer.score_multi(list(golds), answer) for answer, golds in _asked(outcome)]
    expected = {name: np.mean([row[name].fmeasure for row in rows]) for name in rouge.NAMES if rows}
    assert figures(rouge, outcome) == pytest.approx(expected)


@pytest.mark.parametrize("score", SCORES, ids=lambda score: score.__name__)
@pytest.mark.parametrize("answer", ["", "x"])
def test_a_right_answer_without_words_has_the_same_figures_resampled(score: ModuleType, answer: str) -> None:
    outcome = Answered(((" ",), (" ", "\u00a0")), (answer, answer))
    plain, drawn = figures(score, outcome), score.resampled(outcome)(np.ones((1, 2)))
    assert {name: values.tolist() for name, values in drawn.items()} == {name: [plain[name]] for name in drawn}


def test_meteor_by_hand_says_by_its_name_that_it_has_no_wordnet(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(nltk.data, "path", [])
    monkeypatch.setattr(meteor, "wordnet", LazyCorpusLoader("wordnet", WordNetCorpusReader, None))
    # "milling" has the stem of "mills": two of two words match, in one chunk: 1 - (1/2)·(1/2)³.
    outcome = Answered((("nothing", "Ada mills"), ()), ("Ada milling", "Ada"))
    assert figures(meteor, outcome) == pytest.approx({"meteor_exact_stem": 1 - 0.5 * 0.5**3})
    assert figures(meteor, Answered((("car",),), ("auto",))) == {"meteor_exact_stem": 0.0}


def test_meteor_with_wordnet_takes_a_synonym_for_the_word(monkeypatch: pytest.MonkeyPatch) -> None:
    synset = SimpleNamespace(lemmas=lambda: [SimpleNamespace(name=lambda: "car"), SimpleNamespace(name=lambda: "auto")])
    known = SimpleNamespace(ensure_loaded=lambda: None, synsets=lambda word: [synset])
    monkeypatch.setattr(meteor, "wordnet", known)
    # One word of one matches, in one chunk: 1 - (1/2)·(1/1)³.
    assert figures(meteor, Answered((("car",),), ("auto",))) == {"meteor": 0.5}


def test_right_answers_that_rouge_cannot_read_are_counted() -> None:
    said = "0 for 1 of 2 questions, whose right answers have no letter from a to z and no digit"
    assert rouge.notes(Answered((("北京市",), ("Ada", "艾达"), ()), ("北京市", "", ""))) == {"rouge": said}
    assert rouge.notes(Answered((("Ada",), ()), ("", ""))) == {}
