"""How large the embedded corpus is."""

from typing import Self

from pydantic import Field, model_validator

from retrace.core.settings import Params, Section, require


class SampleSettings(Section):
    """How large the embedded corpus is."""

    seed: int = Field(default=1, description="draws the corpus")
    articles: int = Field(default=5900, ge=72, description="of the training encyclopedia")
    reviews: int = Field(default=5000, ge=2, description="labelled sentences for training")
    questioned: int = Field(default=820, ge=1, description="training articles with questions, four each")
    held_out_articles: int = Field(
        default=224, ge=24, description="of the validation encyclopedia, and as many of the test one"
    )
    held_out_reviews: int = Field(default=800, ge=2, description="labelled sentences for validation")

    @model_validator(mode="after")
    def _asked_of_articles(self) -> Self:
        require(
            self.questioned <= self.articles,
            "questioned",
            self.questioned,
            f"expected at most articles ({self.articles})",
        )
        return self


class SampleParams(Params):
    """What stages/sources/sample.py reads."""

    sample: SampleSettings = Field(alias="data/params.yaml:sample")
