"""The embedded corpus: an encyclopedia of an invented country, reviews and questions, in the official formats.

Three worlds, for training, validation and test, share no entity, and the held-out ones are put in phrasings that
training never uses. The labelled questions have each of their many nouns only now and then, so a model that has read
the encyclopedia knows more than the labels teach. The labelled reviews seldom use rare adjectives, which the validation
reviews often do: a bag of words hardly learns them. A model that has read the encyclopedia learns them from few labels;
it does not know from reading alone which of them praise.
"""

import json
import random
from collections.abc import Iterable
from pathlib import Path
from typing import Self

from pydantic import Field, model_validator

from retrace.core.files import write_text
from retrace.core.paths import questions_path, running_text, sentences_path
from retrace.core.settings import Params, Section, require
from retrace.datasets.text import text_path
from retrace.sample.encyclopedia import Article, write_articles, write_questions
from retrace.sample.language import Style, write_reviews
from retrace.sample.world import NameMaker, build_world

# Of 72 training articles, and of 224 held-out ones.
SHARES = {"people": 22, "towns": 2, "guilds": 20, "works": 20, "events": 6, "rivers": 2}
HELD_OUT = {"people": 60, "towns": 14, "guilds": 55, "works": 55, "events": 30, "rivers": 10}
READ, LABELLED, ASKED = 0.7, 0.08, 0.5  # share of rare adjectives: encyclopedia, training labels, validation labels


class SampleSettings(Section):
    """How large the embedded corpus is."""

    seed: int = Field(default=1, description="draws the corpus")
    articles: int = Field(default=5600, ge=72, description="of the training encyclopedia")
    reviews: int = Field(default=7000, ge=2, description="labelled sentences for training")
    questioned: int = Field(default=2460, ge=1, description="training articles with questions, four each")
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


def write_sample(folder: Path, settings: SampleSettings) -> None:
    """Write the corpus into `folder`, the same bytes for the same settings."""

    def rng(purpose: str) -> random.Random:
        return random.Random(f"{settings.seed} {purpose}")

    names = NameMaker(rng("names"))
    worlds = {"train": build_world(rng("train world"), names, SHARES, settings.articles / 72)}
    for part in ("valid", "test"):
        worlds[part] = build_world(rng(f"{part} world"), names, HELD_OUT, settings.held_out_articles / 224)
    for part, world in worlds.items():
        articles = write_articles(rng(f"{part} articles"), world, Style(part != "train", READ))
        write_text(text_path(running_text(folder), part), _wikitext(articles))
    written: set[str] = set()
    for part, world, style, reviews in (
        ("train", worlds["train"], Style(False, LABELLED), settings.reviews),
        ("dev", worlds["valid"], Style(True, ASKED), settings.held_out_reviews),
    ):
        places = [e.title.lower() for e in world.others if e.kind in ("work", "town")]
        rows = write_reviews(rng(f"{part} reviews"), places, reviews, style, without=written)
        written.update(text for text, _ in rows)
        lines = ["sentence\tlabel\n", *(f"{text}\t{label}\n" for text, label in rows)]
        write_text(sentences_path(folder, part), "".join(lines))
        asked = write_articles(rng(f"{part} passages"), world, style)[: settings.questioned]
        document = write_questions(rng(f"{part} questions"), asked, style, part)
        write_text(questions_path(folder, part), json.dumps(document, indent=1) + "\n")


def _wikitext(articles: Iterable[Article]) -> str:
    lines = []
    for article in articles:
        lines += ["", f"= {article.subject.title} =", "", *article.paragraphs]
    return "".join(f" {line} \n" if line else " \n" for line in lines)
