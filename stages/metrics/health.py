"""Signs that a model has learned nothing, whatever its scores look like."""

from collections.abc import Mapping, Sequence


def classification_flags(predicted: Sequence[int], accuracy: float, majority: float, margin: float) -> dict[str, bool]:
    """Flags of a classifier; `accuracy` and `majority` are percentages, `margin` is in points."""
    return {
        "one_class_only": len(set(predicted)) < 2,
        "not_above_majority": accuracy < majority + margin,
    }


def answer_flags(
    answers: Mapping[str, str], f1: float, exact: float, no_answer: float, margin: float
) -> dict[str, bool]:
    """Flags of a reader; percentages, `margin` in points.

    `f1_without_exact` is a high F1 with hardly an exact match: answers that contain everything.
    """
    return {
        "always_empty": all(not text for text in answers.values()),
        "f1_without_exact": f1 > 20 and exact < f1 / 10,
        "not_above_no_answer": f1 < no_answer + margin,
    }
