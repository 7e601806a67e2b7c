"""Settings of question answering: how passages are read and answers chosen."""

from collections.abc import Mapping
from typing import Any, Literal, Self

from pydantic import Field, model_validator

from retrace.core.errors import InputError
from retrace.core.settings import PARAMS, Count, build, plugin_names, require
from retrace.finetuning.settings import FineTuneParams, FineTuneSettings
from retrace.models.settings import FAMILIES, constants_of
from retrace.results.grid import Grid

SHORTEST_WINDOW = 6  # tokens: at most half for [CLS], the question and [SEP], the rest for passage and [SEP]
SHORTEST_PROMPT = 16  # tokens of question and passage


class AnswerSettings(FineTuneSettings):
    """Fine-tuning on questions; an example is a window or, with generated answers, a question."""

    max_length: int = Field(ge=SHORTEST_WINDOW, description="most tokens of a question and a window of its passage")
    answers: Literal["extractive", "generative"] = Field(
        default="extractive", description="extractive: spans of the passage; generative: generated text (family llama)"
    )
    question_match: bool = Field(
        default=False, description="mark the words of the passage that occur in the question; extractive answers only"
    )
    doc_stride: Count = Field(default=128, description="tokens between the starts of the windows of a long passage")
    train_length: int | None = Field(
        default=None,
        ge=SHORTEST_WINDOW,
        description="train on one window of this many tokens per question, mostly with its answer; null: on all "
        "windows of max_length; extractive answers only",
    )
    max_answer_length: Count = Field(default=30, description="most tokens of an answer")

    @model_validator(mode="after")
    def _suits_the_answers(self) -> Self:
        for key, absent in (("question_match", False), ("train_length", None), ("rdrop", 0.0)):
            value = getattr(self, key)
            require(self.answers == "extractive" or value == absent, key, value, "it needs answers: extractive")
        if self.answers == "generative":
            least = self.max_answer_length + SHORTEST_PROMPT
            allowed = f"expected at least {least}, to fit max_answer_length and {SHORTEST_PROMPT} tokens to read"
            require(self.max_length >= least, "max_length", self.max_length, allowed)
        return self


class FineTuneAnswerParams(FineTuneParams):
    """What stages/finetune_squad.py reads."""

    # Nobody assigns to it, so a narrower type is safe.
    task: AnswerSettings = Field(alias="${item.task}")  # pyright: ignore[reportIncompatibleVariableOverride]


def settings_of(params: Mapping[str, Any], task: str) -> FineTuneSettings:
    """The settings of a task in params.yaml: `AnswerSettings` for question answering."""
    has_questions = Grid.read(params).kind_of(task) == "question_answering"
    return build(AnswerSettings if has_questions else FineTuneSettings, params, task)


def check_generative(family: str, task: str) -> None:
    """Raise InputError if models of the family cannot generate answers, as the task's settings require."""
    able = [name for name in plugin_names(FAMILIES) if constants_of(name)["OBJECTIVE"] == "causal"]
    if family not in able:
        expected = f"expected one of {', '.join(able)}"
        raise InputError(f"{PARAMS}: {task}.answers: generative is not allowed with family: {family}; {expected}")
