"""Schemas of reports/metrics.json, the headline figures, and reports/scores.json, everything about each task.

Figures are keyed by name. A task with a test set has two entries; the one of the test set has the name `on_test(task)`.
"""

from collections import Counter
from pathlib import Path
from typing import ClassVar

from pydantic import Field

from retrace.core.records import Record
from retrace.statistics.scales import Comparison, Flags, Interval, Legend

METRICS, DETAILS = Path("reports/metrics.json"), Path("reports/scores.json")
DATA = "data"  # the key of the data's flags, among the methods
BESIDE = ("HasAns_f1", "NoAns_f1", "validation_loss", "loss")  # figures in metrics.json besides the headlines

Figures = dict[str, int | float]
Intervals = dict[str, Interval]  # by figure
Columns = dict[str, list[float]]  # of equal length


class TaskMetrics(Record):
    """A task's headline figures: means over seeds, by method."""

    SPREAD: ClassVar[str] = "methods"
    baselines: dict[str, Figures]
    methods: dict[str, Figures]
    flags: dict[str, dict[str, int]] = Field(default={})  # method or DATA → flag → how many seeds have it; 1 for data


class Metrics(Record):
    """metrics.json: what a review looks at first, with six digits."""

    SPREAD: ClassVar[str] = "tasks"
    tasks: dict[str, TaskMetrics]


class GroupDetails(Record):
    """The headline figures of some of a task's examples, as means over seeds."""

    examples: int
    figures: Figures
    intervals: Intervals


class ClassBreakdown(Record):
    """A classifier's decisions by class; means over seeds."""

    confusion: list[list[float]]  # (C, C); rows: true classes, columns: predicted classes
    classes: dict[str, Figures]  # precision, recall, F1 and the number of examples of each class
    reliability: Columns  # confidence, accuracy and number of examples of each bin of confidence that has any


class AnswerBreakdown(Record):
    """Counts of questions, and the scores by threshold; means over seeds."""

    answered: float
    answerable: int
    questions: int
    # threshold, f1, exact_match: the scores if the model abstained where no answer scores more than `threshold` above
    # the best span; empty for a model that never abstains
    threshold_curve: Columns


class SeedDetails(Record):
    """A method with one seed, at the epoch that was kept."""

    epoch: int
    figures: Figures  # the loss is among them
    intervals: Intervals
    before: Figures  # the same before training
    flags: Flags = Field(default={})


class MethodDetails(Record):
    """A method over all its seeds."""

    SPREAD: ClassVar[str] = "breakdown"
    figures: Figures  # means over seeds
    std: Figures = Field(default={})  # over seeds; empty with one seed
    intervals: Intervals  # of the means
    intervals_of: str  # the sources of variation that they cover, in words
    groups: dict[str, dict[str, GroupDetails]]  # such as length → "1–8 words" → figures
    flags: Flags = Field(default={})
    ahead: Intervals = Field(default={})  # by baseline: of the first headline minus the baseline's, paired
    seeds: dict[str, SeedDetails]
    breakdown: ClassBreakdown | AnswerBreakdown


class BaselineDetails(Record):
    """A baseline, which needs no language model."""

    figures: Figures
    intervals: Intervals


class TaskDetails(Record):
    """Everything about a task's figures."""

    headlines: list[str]  # the figures that methods are judged by
    legend: Legend  # what each figure is
    baselines: dict[str, BaselineDetails]
    methods: dict[str, MethodDetails]
    comparisons: list[Comparison]
    notes: dict[str, str] = Field(default={})
    flags: Flags = Field(default={})  # of the data

    @property
    def metrics(self) -> TaskMetrics:
        """The part that goes into metrics.json."""
        flags = {}
        for method, details in self.methods.items():
            of_seeds = (flag for seed in details.seeds.values() for flag in seed.flags)
            flags[method] = dict(Counter([*details.flags, *of_seeds]))
        flags[DATA] = dict.fromkeys(self.flags, 1)
        shown = (*self.headlines, *BESIDE)
        return TaskMetrics(
            baselines={name: _some(details.figures, self.headlines[:1]) for name, details in self.baselines.items()},
            methods={method: _some(details.figures, shown) for method, details in self.methods.items()},
            flags={name: found for name, found in flags.items() if found},
        )


class Details(Record):
    """scores.json: figures, intervals, comparisons, groups, breakdowns and flags of every task, with twelve digits."""

    SPREAD: ClassVar[str] = "tasks"
    tasks: dict[str, TaskDetails]


def _some(figures: Figures, names: tuple[str, ...] | list[str]) -> Figures:
    return {name: figures[name] for name in names if name in figures}
