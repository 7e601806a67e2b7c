"""METEOR (Banerjee and Lavie 2005) with its original parameters (α 0.9, β 3, γ 0.5), by nltk.

Only answerable questions count, each with the best match among its gold answers. Words match if they are equal, have
the same stem or, by WordNet, a meaning in common. WordNet is used if nltk finds it; without it the figure
is called `meteor_exact_stem`. nltk looks up the stems of words, so it finds that auto and car have a meaning in common,
but not that automobile and car do. Words are those of nltk's NLTKWordTokenizer, which needs no data; `word_tokenize`
differs from it only in texts of several sentences. Fractions.
"""

from functools import lru_cache, partial
from types import SimpleNamespace
from typing import Any

from nltk.corpus import wordnet
from nltk.stem import PorterStemmer
from nltk.tokenize import NLTKWordTokenizer
from nltk.translate.meteor_score import meteor_score

from retrace.evaluation.outcomes import Answered
from retrace.evaluation.question_answering import OneAnswer, figures_by_question
from retrace.statistics.intervals import Resampled, Share, mean_of, whole_shares
from retrace.statistics.scales import Figure

CITATION = "Banerjee and Lavie 2005: METEOR: An Automatic Metric for MT Evaluation. ACL workshop."
FIGURES = {
    "meteor": Figure("fraction", "higher", "METEOR"),
    "meteor_exact_stem": Figure("fraction", "higher", "METEOR, exact and stem matches"),
}

_words = lru_cache(1 << 18)(NLTKWordTokenizer().tokenize)
_STEMMER: Any = SimpleNamespace(stem=lru_cache(1 << 18)(PorterStemmer().stem))
_NO_SYNONYMS: Any = SimpleNamespace(synsets=lambda word: [])  # in place of WordNet


def resampled(outcome: Answered) -> Resampled:
    """The figures for weights of questions, (R, N)."""
    return mean_of(figures_by_question(outcome, _one_answer()), outcome.answerable)


def shares(outcome: Answered) -> dict[str, Share]:
    """The figure, if every answer is wholly right or wrong."""
    return whole_shares(figures_by_question(outcome, _one_answer()), outcome.answerable)


def _one_answer() -> OneAnswer:
    """The score of an answer, with WordNet if nltk finds it."""
    try:
        wordnet.ensure_loaded()
    except LookupError:
        return partial(_best, "meteor_exact_stem")
    return partial(_best, "meteor")


@lru_cache(1 << 18)
def _best(name: str, answer: str, golds: tuple[str, ...]) -> dict[str, float]:
    right = [_words(text) for text in dict.fromkeys(golds)]
    synonyms: Any = wordnet if name == "meteor" else _NO_SYNONYMS
    return {name: meteor_score(right, _words(answer), stemmer=_STEMMER, wordnet=synonyms)}
