"""ROUGE-1, ROUGE-2, ROUGE-L and ROUGE-Lsum (Lin 2004), F-measures, by Google's rouge-score.

Only answerable questions count, each with the best match among its gold answers for each of the four figures. Words are
not stemmed, as in Hugging Face's `evaluate`. Fractions.
"""

import re
from functools import lru_cache

from rouge_score.rouge_scorer import RougeScorer

from retrace.evaluation.outcomes import Answered
from retrace.evaluation.question_answering import figures_by_question
from retrace.statistics.intervals import Resampled, Share, mean_of, whole_shares
from retrace.statistics.scales import Figure

CITATION = "Lin 2004: ROUGE: A Package for Automatic Evaluation of Summaries. Text Summarization Branches Out."
NAMES = ("rouge1", "rouge2", "rougeL", "rougeLsum")
FIGURES = {name: Figure("fraction", "higher", name.replace("rouge", "ROUGE-")) for name in NAMES}

_SCORER = RougeScorer(NAMES)
_READ = re.compile("[a-z0-9]")


def resampled(outcome: Answered) -> Resampled:
    """The figures for weights of questions, (R, N)."""
    return mean_of(figures_by_question(outcome, _one_answer), outcome.answerable)


def shares(outcome: Answered) -> dict[str, Share]:
    """The figures for which every answer is wholly right or wrong."""
    return whole_shares(figures_by_question(outcome, _one_answer), outcome.answerable)


def notes(outcome: Answered) -> dict[str, str]:
    """A note where ROUGE is 0 whatever the answer, as rouge-score reads only the letters a to z and digits."""
    golds = [" ".join(golds) for golds in outcome.golds if golds]
    unread = sum(not _READ.search(gold.lower()) for gold in golds)
    said = f"0 for {unread} of {len(golds)} questions, whose right answers have no letter from a to z and no digit"
    return {"rouge": said} if unread else {}


@lru_cache(1 << 18)
def _one_answer(answer: str, golds: tuple[str, ...]) -> dict[str, float]:
    best = _SCORER.score_multi(list(dict.fromkeys(golds)), answer)
    return {name: float(best[name].fmeasure) for name in NAMES}
