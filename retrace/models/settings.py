"""Settings of the model: its checkpoint or its sizes; and the constants of its family's file."""

import ast
from collections.abc import Mapping
from contextlib import suppress
from typing import Any, Self

from pydantic import Field, model_validator

from retrace.core.errors import InputError
from retrace.core.files import file_digest
from retrace.core.paths import PROJECT
from retrace.core.settings import PARAMS, Dropout, Positive, Section, Seed, Size, parse_source, require

FAMILIES, FOLDER = "retrace.families", PROJECT / "retrace/families"


class ModelSettings(Section):
    """The checkpoint, which has its own tokenizer, sizes and dropout, or the sizes of a model trained from scratch."""

    checkpoint: str | None = Field(
        default=None, description="weights to start from, with tokenizer and sizes: org/name@commit or folder@digest"
    )
    random_seed: Seed | None = Field(
        default=None,
        description="replace the checkpoint's weights by random ones from this seed, keeping its tokenizer and sizes",
    )
    hidden_size: Size = Field(description="width of the model")
    layers: int = Field(ge=1, le=10_000, description="number of layers")
    heads: Size = Field(description="number of attention heads; must divide hidden_size")
    intermediate_size: Size = Field(description="width of the feed-forward layers")
    max_positions: Size = Field(description="the longest input, in tokens")
    dropout: Dropout = Field(default=0.0, description="dropout in pretraining, and in fine-tuning unless set there")
    init_std: Positive = Field(default=0.02, description="standard deviation of the initial weights")
    rope_theta: float | None = Field(
        default=None, gt=1, description="base of rotary positions; lower for short blocks; null: the family's default"
    )
    kv_heads: Size | None = Field(
        default=None,
        description="number of key and value heads (Ainslie et al. 2023); must divide heads; null: as many as heads",
    )

    @model_validator(mode="after")
    def _heads_divide(self) -> Self:
        for whole, part in (("hidden_size", "heads"), ("heads", "kv_heads")):
            size, parts = getattr(self, whole), getattr(self, part)
            require(size % (parts or 1) == 0, part, parts, f"it must divide {whole} ({size})")
        return self

    @property
    def shape(self) -> dict[str, Any]:
        """The settings with the same meaning in every family, by transformers' names."""
        return {
            "hidden_size": self.hidden_size,
            "intermediate_size": self.intermediate_size,
            "num_hidden_layers": self.layers,
            "num_attention_heads": self.heads,
            "initializer_range": self.init_std,
        }


def with_family(facts: Mapping[str, Any], family: str) -> dict[str, Any]:
    """The facts of a model and the SHA-256 of its family's file.

    They are in the model's folder, so the stages that read it rerun when that file changes, without depending on it.
    """
    return {**facts, "family_code": file_digest(FOLDER / f"{family}.py")}


def constants_of(family: str) -> dict[str, Any]:
    """The constants of a family's file, parsed from its source, as importing it takes seconds."""
    found = {}
    for line in parse_source(FOLDER / f"{family}.py"):
        if isinstance(line, ast.Assign) and isinstance(line.targets[0], ast.Name):
            with suppress(ValueError):
                found[line.targets[0].id] = ast.literal_eval(line.value)
    return found


def check_family(family: str, settings: ModelSettings) -> None:
    """Raise InputError if a family cannot have these settings; its `OPTIONS` are settings that only some have."""
    options = constants_of(family).get("OPTIONS", ())
    for setting in ("kv_heads", "rope_theta"):
        value = getattr(settings, setting)
        if value is not None and setting not in options:
            raise InputError(f"{PARAMS}: model.{setting}: {value} is not allowed with family: {family}; expected null")
    width = settings.hidden_size // settings.heads
    if "rope_theta" in options and width % 2:
        allowed = f"rotary positions need heads of an even width, not of {width}"
        raise InputError(f"{PARAMS}: model.heads: {settings.heads} is not allowed; {allowed}")


def check_pairs(family: str) -> None:
    """Raise InputError if a family has no next-sentence prediction, and so no `PAIRS_ONLY`, the weights for it."""
    if "PAIRS_ONLY" not in constants_of(family):
        raise InputError(f"{PARAMS}: pretrain.next_sentence: true is not allowed with family: {family}")
