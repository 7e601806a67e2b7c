"""reports/metrics.json and reports/scores.json. Figures are metrics by name; test sets are tasks too (`on_test`)."""

from pathlib import Path
from typing import ClassVar

from pydantic import Field

from retrace.core.records import Record
from retrace.statistics.scales import Better, Comparison, Flags, Interval

METRICS, DETAILS = Path("reports/metrics.json"), Path("reports/scores.json")

Figures = dict[str, int | float]
Intervals = dict[str, Interval]  # by figure


class SeedMetrics(Record):
    """A method with one seed, at the epoch whose weights were kept."""

    SPREAD: ClassVar[str] = "figures"
    epoch: int
    figures: Figures  # the validation loss is among them


class MethodMetrics(Record):
    """A method with every seed."""

    SPREAD: ClassVar[str] = "seeds"
    seeds: dict[str, SeedMetrics]
    mean: Figures
    std: Figures = Field({})  # over seeds; empty with one seed
    intervals: Intervals  # of headline means


class TaskMetrics(Record):
    """A task's baselines and methods."""

    SPREAD: ClassVar[str] = "methods"
    baselines: dict[str, Figures]
    methods: dict[str, MethodMetrics]


class Metrics(Record):
    """metrics.json: the figures of every task and the flags, to the six digits that git keeps."""

    SPREAD: ClassVar[str] = "tasks"
    tasks: dict[str, TaskMetrics]
    flags: dict[str, dict[str, Flags]]  # by task, and "full 1", "full" or "data"


class ClassBreakdown(Record):
    """A classifier's decisions by class."""

    confusion: list[list[int]]  # (C, C), rows the right classes
    classes: dict[str, Figures]  # precision, recall, F1 and the number of examples of each class


class AnswerBreakdown(Record):
    """How many questions were answered, how many have an answer, and how many there are."""

    answered: int
    answerable: int
    questions: int


class SeedDetails(Record):
    """A method with one seed."""

    SPREAD: ClassVar[str] = "breakdown"
    intervals: Intervals
    before: Figures  # before training
    groups: dict[str, Figures]  # of groups of examples, the number of `examples` among them
    breakdown: ClassBreakdown | AnswerBreakdown


class MethodDetails(Record):
    """A method with every seed."""

    intervals: Intervals  # of the mean over seeds
    intervals_of: str  # the sources of chance that they cover, in words
    seeds: dict[str, SeedDetails]


class TaskDetails(Record):
    """Everything about a task's figures."""

    headlines: list[str]  # the figures that methods are judged by
    scales: dict[str, str]  # of each figure, one of `SCALES`
    better: dict[str, Better]
    metrics: TaskMetrics  # with twelve digits
    notes: dict[str, str]
    baselines: dict[str, Intervals]
    methods: dict[str, MethodDetails]
    comparisons: list[Comparison]


class Details(Record):
    """scores.json: intervals, comparisons, groups and breakdowns of every task."""

    SPREAD: ClassVar[str] = "tasks"
    tasks: dict[str, TaskDetails]
