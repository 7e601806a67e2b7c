"""Outcomes (predicted classes or answers, with the gold ones), the metrics computed from them, and the tasks to score.

Each metric is a file of retrace/evaluation/metrics; params.yaml lists the metrics of each kind of task.
"""

import math
import re
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import compress
from pathlib import Path
from types import ModuleType
from typing import Any, ClassVar, get_args

import numpy as np
import pandas as pd
from scipy.special import softmax

from retrace.core.errors import InputError
from retrace.core.settings import load_plugin, plugin_file
from retrace.datasets.splits import keys_of, known_rows
from retrace.datasets.squad import Question
from retrace.datasets.words import UNSPACED
from retrace.results.predictions import LOGIT
from retrace.statistics.intervals import Clusters, Resampled, Scored, clusters_of, resample
from retrace.statistics.scales import SCALES, Better, Figure

METRICS = "retrace.evaluation.metrics"
PARTS = 4  # groups of examples by length
CLUSTERED = "intervals, p values"  # what a note on examples that share a text is on
HALF_A_DIGIT, MOST_ROUNDING = 0.005, 0.1  # largest rounding error of a probability, and of a row's sum
FLOAT_ERROR = 1e-9  # of the sum itself
Texts = tuple[str, str | None]  # a row's text, or two that belong together
Groups = dict[str, np.ndarray]  # examples that are scored separately: name → (N,), bool

_WORD = re.compile(rf"[{UNSPACED}]|[^\s{UNSPACED}]+")


@dataclass(frozen=True)
class Classified:
    """One predicted class for each example."""

    classes: tuple[str, ...]  # names, by number
    labels: np.ndarray  # (N,), the true classes
    predicted: np.ndarray  # (N,)
    probabilities: np.ndarray | None = None  # (N, C), if the model gives them; each row sums to 1

    def __len__(self) -> int:
        return len(self.labels)

    @property
    def decided(self) -> list[int]:
        """The predicted classes, as they are written to files."""
        return self.predicted.tolist()

    def part(self, which: np.ndarray) -> "Classified":
        """Some of the examples, (N,), bool."""
        given = None if self.probabilities is None else self.probabilities[which]
        return Classified(self.classes, self.labels[which], self.predicted[which], given)

    @property
    def scored(self) -> int:
        """The number of examples behind a figure."""
        return len(self)


@dataclass(frozen=True)
class Answered:
    """One answer to each question, "" for none."""

    golds: tuple[tuple[str, ...], ...]  # N tuples of gold answers, empty if the question has none
    answers: tuple[str, ...]  # (N,)
    spans: tuple[str, ...] | None = None  # (N,), the best answers, if the model may abstain
    no_answer: np.ndarray | None = None  # (N,), the score of no answer less that of the span, on any scale
    starts: tuple[int, ...] | None = None  # (N,), where the answers start in their passages, if known
    abstained: np.ndarray | None = None  # (N,), bool, where "" is an abstention rather than an empty answer

    def __len__(self) -> int:
        return len(self.answers)

    @property
    def decided(self) -> list[dict[str, str | int]]:
        """The answers and where they start, -1 if there is none, as files have them."""
        starts = self.starts or (-1,) * len(self)
        return [{"text": text, "start": start} for text, start in zip(self.answers, starts, strict=True)]

    def part(self, which: np.ndarray) -> "Answered":
        """Some of the questions, (N,), bool, without what a best threshold needs."""
        abstained = None if self.abstained is None else self.abstained[which]
        golds, answers = tuple(compress(self.golds, which)), tuple(compress(self.answers, which))
        return Answered(golds, answers, abstained=abstained)

    @property
    def answerable(self) -> np.ndarray:
        """(N,), whether the question has an answer."""
        return np.array([bool(golds) for golds in self.golds], dtype=bool)

    @property
    def scored(self) -> int:
        """The number of questions behind most figures: those that have an answer, or all if none has one."""
        return int(self.answerable.sum()) or len(self)


def answered(
    questions: Sequence[Question],
    spans: Mapping[str, str],
    no_answer: Mapping[str, float] | None = None,
    threshold: float = 0.0,
) -> Answered:
    """The outcome of the answers `spans`, by question id; questions without one are left out.

    The model abstains where `no_answer`, by id, is above `threshold`.
    """
    scored = [question for question in questions if question.id in spans]
    golds = tuple(tuple(answer.text for answer in question.answers) for question in scored)
    texts = tuple(spans[question.id] for question in scored)
    if no_answer is None:
        return Answered(golds, texts)
    values = np.array([no_answer[question.id] for question in scored], dtype=np.float64)
    abstained = values > threshold
    answers = tuple("" if absent else text for text, absent in zip(texts, abstained, strict=True))
    return Answered(golds, answers, texts, values, abstained=abstained)


def classified(rows: pd.DataFrame, labels: np.ndarray, classes: tuple[str, ...]) -> Classified:
    """The outcome of a classifier's predictions: the class with the largest logit, in a tie the first."""
    logits = logits_of(rows)
    return Classified(classes, labels, logits.argmax(axis=1), softmax(logits, axis=1))


def answers_of(rows: pd.DataFrame, questions: Sequence[Question]) -> Answered:
    """The outcome of a model's predictions, one row per question; it abstains where the null score is higher."""
    by_id = rows.set_index("id")
    no_answer = (by_id["null_score"] - by_id["score"]).dropna()  # empty for a model that never abstains
    return answered(questions, by_id["text"].to_dict(), no_answer.to_dict() or None)


def sum_to_one(probabilities: np.ndarray) -> np.ndarray:
    """Which rows of (N, C) sum to 1, as closely as numbers rounded to two digits can: (N,), bool."""
    allowed = min(HALF_A_DIGIT * probabilities.shape[1], MOST_ROUNDING) + FLOAT_ERROR
    return np.abs(probabilities.sum(axis=1) - 1) <= allowed


def logits_of(rows: pd.DataFrame) -> np.ndarray:
    """The logits of a classifier's predictions, (N, C)."""
    return rows[[name for name in rows if str(name).startswith(LOGIT)]].to_numpy()


def load_metric(name: str, key: str) -> ModuleType:
    """A file of retrace/evaluation/metrics.

    Raises InputError, which names the `key` of the settings if there is no such file, or the file if it does not define
    what a metric needs.
    """
    metric = load_plugin(METRICS, name, ("FIGURES", "resampled"), key)
    scales = tuple(scale for scale in SCALES if scale != "percent")  # which has no ends, unlike percentage
    for figure, what in metric.FIGURES.items():
        for field, value, allowed in (("scale", what.scale, scales), ("better", what.better, get_args(Better))):
            if value not in allowed:
                said = f"{figure}: {field}: {value!r} is not allowed; expected one of {', '.join(allowed)}"
                raise InputError(f"{plugin_file(METRICS, name)}: {said}")
    return metric


def figures(metric: ModuleType, outcome: Any) -> dict[str, float]:
    """A metric's figures: those of its `score`, if it has one, and the rest by `resampled` with weights of 1.

    Raises InputError if one is not listed in `FIGURES` or is not a finite number.
    """
    own: dict[str, float] = metric.score(outcome) if hasattr(metric, "score") else {}
    once = _of_resamples(metric, metric.resampled(outcome), np.ones((1, len(outcome))))
    found = own | {name: float(values[0]) for name, values in once.items() if name not in own}
    for name, value in found.items():
        if name not in metric.FIGURES:
            raise InputError(f"{_file(metric)}: {name} is not in FIGURES")
        if not math.isfinite(value):
            raise InputError(f"{_file(metric)}: {name} is {value}; expected a finite number, or none")
    return found


def _of_resamples(metric: ModuleType, resampled: Resampled, weights: np.ndarray) -> dict[str, np.ndarray]:
    """A metric's figures for weights (R, N): (R,) each. Raises InputError if they have another shape."""
    found = resampled(weights)
    for name, values in found.items():
        if np.shape(values) != (len(weights),):
            said = f"{name} has shape {np.shape(values)} for weights {weights.shape}; expected ({len(weights)},)"
            raise InputError(f"{_file(metric)}: {said}")
    return found


def _file(metric: ModuleType) -> Path:
    return plugin_file(METRICS, metric.__name__.rpartition(".")[2])


class Scoring:
    """Figures of an outcome by every listed metric."""

    def __init__(self, names: Sequence[str]) -> None:
        """The names are files of retrace/evaluation/metrics, all for the same kind of outcome."""
        self._metrics = {name: load_metric(name, "metrics") for name in names}
        every: dict[str, Figure] = {}
        for name, metric in self._metrics.items():
            for twice in sorted(every.keys() & metric.FIGURES.keys()):  # one would silently replace the other
                raise InputError(f"{plugin_file(METRICS, name)}: {twice!r} is a figure of another metric too")
            every |= metric.FIGURES
        self.legend = {key: replace(what, name=what.name or key.replace("_", " ")) for key, what in every.items()}
        self.scales = {name: figure.scale for name, figure in every.items()}
        self.ends = {name: SCALES[scale].ends for name, scale in self.scales.items()}

    def of(self, names: Collection[str]) -> "Scoring":
        """A scoring by only those metrics that compute any of these figures."""
        return Scoring([name for name, metric in self._metrics.items() if metric.FIGURES.keys() & names])

    def score(self, outcome: Any) -> dict[str, float]:
        """The figures."""
        return {name: value for metric in self._metrics.values() for name, value in figures(metric, outcome).items()}

    def resampled(self, outcome: Any) -> Resampled:
        """The figures for weights of examples, except counts and thresholds."""
        every = [(metric, metric.resampled(outcome)) for metric in self._metrics.values()]
        return lambda weights: {
            name: values for each in every for name, values in _of_resamples(*each, weights).items()
        }

    def scored(
        self, outcomes: Mapping[str, Classified | Answered], resamples: int, seed: int, clusters: Clusters = None
    ) -> dict[str, Scored]:
        """The figures of several models on the same examples and resamples of them, by name."""
        examples = len(next(iter(outcomes.values())))
        functions = {name: self.resampled(outcome) for name, outcome in outcomes.items()}
        drawn = resample(functions, examples, resamples, seed, clusters)
        return {
            name: Scored(
                self.score(outcome),
                drawn[name],
                self._optional("shares", outcome),
                dict.fromkeys(self.legend, outcome.scored) | self._optional("examples", outcome),
                self._optional("by_class", outcome),
                self.ends,
                clusters,
            )
            for name, outcome in outcomes.items()
        }

    def notes(self, outcome: Any) -> dict[str, str]:
        """Notes of metrics on how they were computed, such as sacrebleu's signature."""
        return self._optional("notes", outcome)

    def _optional(self, function: str, outcome: Any) -> dict[str, Any]:
        """The results of an optional function, of all metrics that have it."""
        having = [getattr(metric, function) for metric in self._metrics.values() if hasattr(metric, function)]
        return {name: value for compute in having for name, value in compute(outcome).items()}


class ScoredTask:
    """The examples of a task, for scoring: those of its test split where that is given, else of dev.

    Each kind of task adds `fits`, whether a run's predictions are for these examples; `outcome`, the decisions in the
    predictions; `baselines`, their outcomes; and `breakdown`, what the report shows besides the figures.
    """

    headlines: ClassVar[tuple[str, ...]]  # the figures that methods are judged by, the most important first
    given_how: str  # what `given` means, in words

    def __init__(self, parts: Sequence[Sequence[Texts]], unit: str, given: Callable[..., np.ndarray]) -> None:
        """`parts` are the rows of train, dev and perhaps test; `unit` names what first texts are counted in.

        `given(texts, training)` tells which texts, as words, the training texts give away: (N,), bool.
        """
        train, dev, *test = (keys_of(rows) for rows in parts)
        scored = test[0] if test else dev
        self.split = "test" if test else "dev"
        self.shared = known_rows(scored, train)  # (N,), bool: examples that are in the training data too
        self.shared_with_dev = known_rows(scored, dev if test else [])  # or, for a test set, in the validation data
        firsts = [first for first, _ in scored]
        self.clusters = clusters_of(firsts)
        self.given = given(firsts, [first for first, _ in train])
        self.groups: dict[str, Groups] = {"length": length_groups([first for first, _ in parts[-1]], unit)}
        if self.shared.any() and not self.shared.all():
            self.groups["overlap"] = {"not in the training data": ~self.shared}
        self.notes: dict[str, str] = {}  # by what they are on
        if self.clusters is not None:
            text, count = unit.partition(" of ")[2] or "text", int(self.clusters.max()) + 1
            self.notes[CLUSTERED] = (
                f"whole {text}s are resampled, {count:,} in all, as examples that share one are not independent"
            )


def text_clusters(texts: Iterable[str]) -> Clusters:
    """The clusters of examples whose first texts, or passages, have the same words."""
    return clusters_of([first for first, _ in keys_of((text, None) for text in texts)])


def length_groups(texts: Sequence[str], unit: str) -> Groups:
    """Up to four groups of about equal size by the number of words: "1–8 words" → (N,), bool."""
    lengths = np.array([len(_WORD.findall(text)) for text in texts])
    ends = np.unique(np.quantile(lengths, np.arange(1, PARTS + 1) / PARTS, method="lower")).astype(int)
    first, groups = int(lengths.min()), {}
    for end in ends.tolist():
        name = f"{first}–{end} {unit}" if end > first else f"{end} {unit}"
        groups[name] = (lengths >= first) & (lengths <= end)
        first = end + 1
    return groups
