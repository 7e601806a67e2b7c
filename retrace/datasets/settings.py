"""Which splits a data set has."""

from typing import Literal, Self

from pydantic import Field, model_validator

from retrace.core.settings import Section, Split, require

# What is drawn for validation: texts, each with all rows that lie in it and all questions on it; or rows, one by one.
SplitBy = Literal["text", "row"]


class SplitSettings(Section):
    """Which splits a data set has; the validation split may be drawn from the training split."""

    train: str = Field(description="the training split")
    dev: str | None = Field(default=None, description="the validation split; null with split")
    test: str | None = Field(
        default=None, description="a test split with labels, which is scored once and chooses no epoch"
    )
    split: Split | None = Field(
        default=None, description="train on this share of train and validate on the rest, where there is no dev"
    )
    split_seed: int = Field(default=1, description="draws what is trained on")
    split_by: SplitBy = Field(
        default="text", description="texts that lie in one another stay together; row: they may be in both parts"
    )

    @model_validator(mode="after")
    def _one_dev(self) -> Self:
        require((self.dev is None) != (self.split is None), "split", self.split, "expected either dev or split")
        taken = [name for name in (self.train, self.dev) if name is not None]
        require(self.test not in taken, "test", self.test, f"expected another than {' and '.join(taken)}")
        return self

    @property
    def parts(self) -> dict[str, str]:
        """What the splits that there are are called where they come from."""
        named = {"train": self.train, "dev": self.dev, "test": self.test}
        return {part: name for part, name in named.items() if name is not None}
