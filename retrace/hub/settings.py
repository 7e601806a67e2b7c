"""Data sets of the hub in data/params.yaml.

They are kept apart from the code that reads the data sets, so that settings can be checked without importing the hub's
client, which takes long.
"""

from typing import Annotated, Any, Literal

from pydantic import AfterValidator, Field

from retrace.core.settings import Count, Section
from retrace.datasets.settings import SourceParams, SplitSettings, TaskParams, TaskSettings
from retrace.hub.pins import PIN, PINNED, Pin


def _pinned(repository: str) -> str:
    if not PIN.fullmatch(repository):
        raise ValueError(f"{repository!r} is not allowed; {PINNED}")
    return repository


def _named(config: str) -> str:
    if not config or "/" in config or config.startswith("."):  # it becomes the name of a folder
        raise ValueError(f"{config!r} is not allowed; expected a name without / that does not begin with a dot")
    return config


class HubDataset(Section):
    """A data set; each split is one of its splits or, unless it is streamed, an expression such as train[:90%]."""

    repository: Annotated[str, AfterValidator(_pinned)] = Field(description="org/name@commit")
    config: Annotated[str, AfterValidator(_named)] = Field(
        default="default", description="the data set's configuration"
    )
    train: str = Field(default="train", description="the training split, or a part of one: train[:90%]")
    stream: Count | None = Field(default=None, description="read this many rows of each split and fetch no more")

    @property
    def pin(self) -> Pin:
        """The repository and its commit."""
        return Pin.parse(self.repository, "repository")

    def split_name(self, split: str) -> str:
        """A split as messages call it."""
        return f"{self.pin} {self.config} {split}"


class HubText(HubDataset):
    """Running text."""

    valid: str = Field(default="validation", description="the validation split")
    test: str = Field(default="test", description="the test split")
    text: str = Field(default="text", description="the column of the text")
    rows: Literal["lines", "documents"] = Field(
        default="documents", description="what a row is: a line, as in WikiText, or a document"
    )

    @property
    def parts(self) -> dict[str, str]:
        """The data set's name of each split."""
        return {"train": self.train, "valid": self.valid, "test": self.test}


class HubSplits(HubDataset, SplitSettings):
    """A data set with a validation split, or with validation data held out of its training split."""

    dev: str | None = Field(default="validation", description="the validation split; null with split")


class HubSentences(HubSplits):
    """Sentences of two classes, by number."""

    text: str = Field(default="sentence", description="the column of the sentence")
    label: str = Field(default="label", description="the column of the label, 0 or 1")


class HubQuestions(HubSplits):
    """Questions on passages, with SQuAD's columns."""

    id: str = Field(default="id", description="the column of the id")
    title: str | None = Field(default="title", description="the column of the title; null: there is none")
    context: str = Field(default="context", description="the column of the passage")
    question: str = Field(default="question", description="the column of the question")
    answers: str = Field(default="answers", description="the column of text and answer_start, a list each")


class HubSettings(Section):
    """The data sets of the three parts of the data source, and of further tasks, which have their own stages."""

    text: HubText
    sst2: HubSentences
    squad: HubQuestions
    classification: dict[str, Any] = Field(default={}, description="further classification tasks, by name")


class HubParams(SourceParams):
    """What stages/sources/hub.py reads."""

    hub: HubSettings = Field(alias="data/params.yaml:hub")


class HubTaskSettings(HubDataset, TaskSettings):
    """A further classification task; train, dev and test are splits of the data set."""


class HubClassificationParams(TaskParams):
    """What stages/sources/hub_classification.py reads."""

    task: HubTaskSettings = Field(alias="data/params.yaml:hub.classification.${key}")
