"""Flags, name → evidence in words: signs that a model has learned nothing or that a figure is wrong."""

import math
from collections.abc import Mapping, Sequence

import numpy as np

from retrace.datasets.splits import given_away_finding, shared_finding
from retrace.evaluation.metrics import squad_v2
from retrace.evaluation.outcomes import Answered, Classified, ScoredTask
from retrace.statistics.scales import SCALES, Flags

ROUNDING = 1e-6
HIGH_F1, LOW_SHARE = 20.0, 0.1  # an F1 above the first with exact matches below this share of it is suspicious
BY_CHANCE = 0.1  # share of texts that may be part of a training text by chance
# A model that predicts one class for every example has a recall of 1, and a precision equal to its accuracy:
# the recall is above ALL, the other two differ by less than NEAR, and the accuracy is below GOOD.
ALL, NEAR, GOOD = 0.999, 0.002, 0.9
RISE = 0.01  # nats; losses near 0 move by less from epoch to epoch
# A class that is never predicted is suspicious if it has this many examples, and this part of an equal share of them.
COMMON, PART = 30, 0.5
NAMED = 3  # such classes in the evidence


def figure_flags(figures: Mapping[str, float], scales: Mapping[str, str]) -> Flags:
    """Flags for figures that are outside their scale or inconsistent with one another.

    `f1_without_exact_match`: a high F1 with hardly any exact match: the answers are far too long, or F1 is wrong.
    `recall_without_accuracy`: the model predicts the positive class for every example.
    """
    flags: Flags = {}
    off = [f"{name} {value:.6g} is not a {scales[name]}" for name, value in figures.items()
           if not _within(value, SCALES[scales[name]].ends)]  # fmt: skip
    if off:
        flags["off_scale"] = ", ".join(off)
    if {"exact_match", "f1"} <= figures.keys():
        exact, f1 = figures["exact_match"], figures["f1"]
        if f1 < exact - ROUNDING:  # an exact match has an F1 of 100
            flags["f1_below_exact_match"] = f"F1 {f1:.4g} is lower than the exact match, {exact:.4g}, which cannot be"
        elif f1 > HIGH_F1 and exact < f1 * LOW_SHARE:
            flags["f1_without_exact_match"] = f"F1 {f1:.4g} with exact match {exact:.4g}"
    if {"recall", "precision", "accuracy"} <= figures.keys():
        recall, precision, accuracy = (figures[name] for name in ("recall", "precision", "accuracy"))
        if recall > ALL and abs(precision - accuracy) < NEAR and accuracy < GOOD:
            evidence = f"recall {recall:.4g} but accuracy {accuracy:.4g}, as if everything were put in one class"
            flags["recall_without_accuracy"] = evidence
    return flags


def decision_flags(outcome: Classified | Answered) -> Flags:
    """Flags for giving all examples the same class or answer, perhaps an empty one, unless it is right for all.

    `never_predicted`: a class that many examples have and that is not predicted for any.
    """
    if isinstance(outcome, Classified):
        predicted, *others = {*outcome.predicted.tolist()}
        if others:
            return _never_predicted(outcome)
        if len(outcome) == 1 or {predicted} == {*outcome.labels.tolist()}:
            return {}
        return {"one_class_only": f"all {len(outcome):,} examples are predicted as {outcome.classes[predicted]}"}
    answer, *others = {*outcome.answers}
    if others or len(outcome) == 1 or all(squad_v2.compare(golds, answer)[0] for golds in outcome.golds):
        return {}
    if not answer:
        return {"always_empty": f"no answer to any of {len(outcome):,} questions"}
    return {"always_the_same": f"{answer!r} is the answer to all {len(outcome):,} questions"}


def _never_predicted(outcome: Classified) -> Flags:
    counts = np.bincount(outcome.labels, minlength=len(outcome.classes))
    least = max(COMMON, PART * len(outcome) / len(outcome.classes))
    missed = sorted({*np.flatnonzero(counts >= least).tolist()} - {*outcome.predicted.tolist()})
    found = [f"{outcome.classes[number]} (the class of {counts[number]:,} of {len(outcome):,})" for number in missed]
    found[NAMED:] = [f"{len(found) - NAMED} more"] if len(found) > NAMED else []
    return {"never_predicted": f"no example is predicted as {' or '.join(found)}"} if found else {}


def loss_flags(losses: Sequence[tuple[float | None, float]]) -> Flags:
    """Flags for rising losses; `losses` are the training and validation loss of each epoch, from before training on."""
    training = [loss for loss, _ in losses if loss is not None]
    validation = [loss for _, loss in losses]
    if training[-1] > training[0] + RISE:
        return {"loss_diverges": f"the training loss rises from {training[0]:.4g} to {training[-1]:.4g}"}
    if min(validation[1:]) > validation[0]:
        best = f"{min(validation[1:]):.4g}"
        said = f"the validation loss is {validation[0]:.4g} before training and at best {best} after it"
        return {"loss_diverges": said}
    return {}


def overlap_flags(task: ScoredTask) -> Flags:
    """Flags for examples that the training data contains or gives away, and for test examples that are also in dev.

    Some are given away by chance: 0.6% of SST-2's own validation set, but 98% of a random part of its training rows.
    """
    part = task.split
    found = {f"{part}_in_training": shared_finding(task.shared, "examples", part)}
    if task.given.mean() > BY_CHANCE:
        found[f"{part}_given_away"] = given_away_finding(task.given, task.shared, part, task.given_how)
    found["test_in_validation"] = shared_finding(task.shared_with_dev, "examples", "test", "dev")
    return {name: lines[0] for name, lines in found.items() if lines}


def _within(value: float, ends: Sequence[float]) -> bool:
    return math.isfinite(value) and ends[0] - ROUNDING <= value <= ends[1] + ROUNDING
