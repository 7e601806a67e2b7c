"""What data/params.yaml says of data sets of the hub, and both files of checkpoints to start from.

Apart from what reads them, so that settings are checked without the hub's client, which takes long to import.
"""

import re
from dataclasses import dataclass
from typing import Annotated, Literal, Self

from pydantic import AfterValidator, Field, model_validator

from retrace.core.errors import InputError
from retrace.core.settings import Count, Params, Section, Seed, file_of
from retrace.sources.settings import SplitSettings, TaskParams, TaskSettings

PINNED = "expected org/name@commit, the commit as 40 hex digits"
_PIN = re.compile(r"([\w.-]+(?:/[\w.-]+)?)@([0-9a-f]{40})")


@dataclass(frozen=True)
class Pin:
    """A repository at a commit; a branch or tag may move and is none."""

    repository: str
    commit: str

    @classmethod
    def parse(cls, text: str, key: str) -> "Pin":
        """The pin that `key` in params.yaml holds.

        Raises InputError where it is none.
        """
        found = _PIN.fullmatch(text)
        if not found:
            raise InputError(f"{file_of(key)}: {key}: {text!r} is not allowed; {PINNED}")
        return cls(found[1], found[2])

    def __str__(self) -> str:
        return f"{self.repository}@{self.commit}"


def is_pin(text: str) -> bool:
    """Whether a text names a repository at a commit."""
    return _PIN.fullmatch(text) is not None


def _pinned(repository: str) -> str:
    if not is_pin(repository):
        raise ValueError(f"{repository!r} is not allowed; {PINNED}")
    return repository


class HubDataset(Section):
    """Which data set; a split is one of its own or, unless streamed, an expression such as train[:90%]."""

    repository: Annotated[str, AfterValidator(_pinned)] = Field(description="org/name@commit")
    config: str = Field(default="default", description="the data set's configuration")
    train: str = Field(default="train", description="the training split, or a part of one: train[:90%]")
    stream: Count | None = Field(default=None, description="read so many rows of each split and fetch no more")

    @property
    def pin(self) -> Pin:
        """The repository and its commit."""
        return Pin.parse(self.repository, "repository")


class HubText(HubDataset):
    """Running text."""

    valid: str = Field(default="validation", description="the validation split")
    test: str = Field(default="test", description="the test split")
    text: str = Field(default="text", description="the column")
    rows: Literal["lines", "documents"] = Field(
        default="documents", description="what a row is: a line, as in WikiText, or a document"
    )


class HubSplits(HubDataset, SplitSettings):
    """A data set with a validation split, or one that is drawn from its training split."""

    train: str = Field(default="train", description="the training split, or a part of one: train[:90%]")
    dev: str | None = Field(default="validation", description="the validation split; null with split")


class HubSentences(HubSplits):
    """Sentences of two classes, by number."""

    text: str = Field(default="sentence", description="the column of the sentence")
    label: str = Field(default="label", description="the column of the label, 0 or 1")


class HubQuestions(HubSplits):
    """Questions on passages, with SQuAD's columns."""

    id: str = Field(default="id", description="the column")
    title: str | None = Field(default="title", description="the column; null: there is none")
    context: str = Field(default="context", description="the column")
    question: str = Field(default="question", description="the column")
    answers: str = Field(default="answers", description="the column of text and answer_start, a list each")


class HubTaskSettings(HubDataset, TaskSettings):
    """A further classification task on a data set; train, dev and test are splits of it."""

    train: str = Field(default="train", description="the training split, or a part of one: train[:90%]")


class HubParams(Params):
    """What stages/sources/hub.py reads."""

    text: HubText = Field(alias="data/params.yaml:hub.text")
    sst2: HubSentences = Field(alias="data/params.yaml:hub.sst2")
    squad: HubQuestions = Field(alias="data/params.yaml:hub.squad")


class HubClassificationParams(TaskParams):
    """What stages/sources/hub_classification.py reads."""

    task: HubTaskSettings = Field(alias="data/params.yaml:hub.classification.${key}")


class CheckpointSettings(Section):
    """A checkpoint that a fine-tuning method starts from."""

    family: str = Field(description="its architecture, a file of retrace/families")
    checkpoint: str = Field(description="org/name@commit of the hub or folder@digest")
    random_seed: Seed | None = Field(
        default=None, description="draw the weights anew from this seed, so that only tokenizer and sizes count"
    )


class ModelParams(Params):
    """What stages/sources/model.py reads of the checkpoint that pretraining starts from."""

    family: str
    checkpoint: str | None = Field(alias="model.checkpoint")
    random_seed: Seed | None = Field(alias="model.random_seed")

    @model_validator(mode="after")
    def _draws_from_something(self) -> Self:
        if self.checkpoint is None and self.random_seed is not None:
            raise ValueError("model.random_seed: it needs model.checkpoint, whose sizes it takes")
        return self


class CheckpointParams(Params):
    """What stages/sources/model.py reads of a further checkpoint."""

    entry: CheckpointSettings = Field(alias="data/params.yaml:checkpoints.${key}")
