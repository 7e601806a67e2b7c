"""From start and end scores to an answer, over all windows of a question."""

from dataclasses import dataclass

import numpy as np

from stages.tasks.windows import Window

LOWEST = float(np.finfo(np.float32).min)  # a number, unlike minus infinity, so that json holds it


@dataclass(frozen=True)
class Span:
    """The best answer in a window and its score beside the score of no answer."""

    text: str
    score: float
    null_score: float


def best_span(window: Window, scores: np.ndarray, max_tokens: int) -> Span:
    """The span of at most `max_tokens` tokens with the largest start plus end score.

    `scores` is (T, 2). Where the window holds nothing of a passage the span is empty and its score the lowest. The
    null score is that of the first token, [CLS] (Devlin et al. 2018, section 4.3).
    """
    starts, ends = scores[window.passage, 0], scores[window.passage, 1]
    null = float(scores[0, 0] + scores[0, 1])
    if len(starts) == 0:
        return Span("", LOWEST, null)
    sums = starts[:, None] + ends[None, :]
    allowed = np.triu(np.ones_like(sums, dtype=bool)) & ~np.triu(np.ones_like(sums, dtype=bool), max_tokens)
    start, end = np.unravel_index(np.where(allowed, sums, -np.inf).argmax(), sums.shape)
    spans = window.spans[window.passage]
    text = window.question.context[spans[start, 0] : spans[end, 1]]
    return Span(text, float(sums[start, end]), null)


def best_over_windows(found: list[Span]) -> Span:
    """The best span of all windows; the null score is the lowest, for one window that holds an answer is enough."""
    best = max(found, key=lambda span: span.score)
    return Span(best.text, best.score, min(span.null_score for span in found))
