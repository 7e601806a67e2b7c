"""What params.yaml says of data sets of the hub: those of `data: hub`, and those of further classification tasks.

Apart from what reads them, so that params.yaml is checked without `datasets`, which takes long to import.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

from retrace.core.settings import build, require
from retrace.hub.repository import PINNED, Pin, is_pin
from retrace.sources.files import SplitBy
from retrace.sources.tasks import TaskSettings, check_name, check_test

SECTION = "hub.classification"  # of further tasks


@dataclass(frozen=True, kw_only=True)
class HubDataset:
    """Which data set; a split is one of its own or, unless streamed, an expression such as train[:90%]."""

    repository: str  # org/name@commit
    config: str = "default"
    train: str = "train"
    stream: int | None = None  # read so many rows of each split and fetch no more; all of them where absent

    def __post_init__(self) -> None:
        require(is_pin(self.repository), "repository", self.repository, PINNED)
        require(self.stream is None or self.stream > 0, "stream", self.stream, "expected a whole number above 0")

    @property
    def pin(self) -> Pin:
        """The repository and its commit."""
        return Pin.parse(self.repository, "repository")


@dataclass(frozen=True, kw_only=True)
class HubText(HubDataset):
    """Running text."""

    valid: str = "validation"
    test: str = "test"
    text: str = "text"  # the column
    rows: Literal["lines", "documents"] = "documents"  # what a row is; lines are WikiText's


@dataclass(frozen=True, kw_only=True)
class WithDev(HubDataset):
    """A data set with a validation split, or one that is drawn from its training split."""

    dev: str | None = "validation"
    test: str | None = None  # scored once at the end
    split: float | None = None  # share of train that is trained on where dev is null; the rest is dev
    split_seed: int = 1  # draws it
    split_by: SplitBy = "text"  # row: one by one, whatever the rows have in common

    def __post_init__(self) -> None:
        super().__post_init__()
        require((self.dev is None) != (self.split is None), "split", self.split, "expected either dev or split")
        require(self.split is None or 0 < self.split < 1, "split", self.split, "expected between 0 and 1")
        check_test(self.train, self.dev, self.test)


@dataclass(frozen=True, kw_only=True)
class HubSentences(WithDev):
    """Sentences of two classes, by number."""

    text: str = "sentence"
    label: str = "label"


@dataclass(frozen=True, kw_only=True)
class HubQuestions(WithDev):
    """Questions on passages, with SQuAD's columns."""

    id: str = "id"
    title: str | None = "title"
    context: str = "context"
    question: str = "question"
    answers: str = "answers"  # text and answer_start, a list each


@dataclass(frozen=True)
class HubSettings:
    """The data sets of the three parts of a source; `classification` holds further tasks."""

    text: HubText
    sst2: HubSentences
    squad: HubQuestions
    classification: dict[str, dict]


@dataclass(frozen=True, kw_only=True)
class HubTaskSettings(HubDataset, TaskSettings):
    """A task on a data set; train, dev and test are splits of it."""

    def __post_init__(self) -> None:
        HubDataset.__post_init__(self)
        TaskSettings.__post_init__(self)


def hub_task_settings(params: Mapping[str, Any], task: str) -> HubTaskSettings:
    """The settings of an entry under `hub.classification` in params.yaml.

    Raises InputError where they or its name are wrong.
    """
    check_name(task, f"{SECTION}.{task}")
    return build(HubTaskSettings, params, f"{SECTION}.{task}")
