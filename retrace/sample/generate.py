"""The embedded corpus: an encyclopedia of an invented country, reviews and questions, in the official formats.

Three worlds, for training, validation and test, share no entity, and the held-out ones are put in
phrasings that training never uses. The encyclopedia says everything in common and rare words alike;
the labelled training data hardly uses the rare ones, and the labelled validation data often does. So
whoever has read the encyclopedia knows more than the labels teach.
"""

import json
import random
from collections.abc import Iterable
from pathlib import Path

from retrace.core.files import write_text
from retrace.core.paths import questions_path, running_text, sentences_path
from retrace.datasets.text import text_path
from retrace.sample.encyclopedia import Article, write_articles, write_questions
from retrace.sample.language import Style
from retrace.sample.opinions import write_reviews
from retrace.sample.settings import SampleSettings
from retrace.sample.world import NameMaker, build_world

# Of 72 training articles, and of 224 held-out ones.
SHARES = {"people": 22, "towns": 2, "guilds": 20, "works": 20, "events": 6, "rivers": 2}
HELD_OUT = {"people": 60, "towns": 14, "guilds": 55, "works": 55, "events": 30, "rivers": 10}
READ, LABELLED, ASKED = 0.5, 0.05, 0.5  # share of rare words: encyclopedia, training labels, validation labels


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
        rows = write_reviews(rng(f"{part} reviews"), world, reviews, style, without=written)
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
