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

from retrace.core.paths import questions_path, running_text, sentences_path
from retrace.datasets.text import text_path
from retrace.sample.encyclopedia import Article, write_articles
from retrace.sample.opinions import write_reviews
from retrace.sample.questions import write_questions
from retrace.sample.relations import Style
from retrace.sample.settings import SampleSettings
from retrace.sample.world import NameMaker, Size, build_world

SHARES = Size(people=22, towns=2, guilds=20, works=20, events=6, rivers=2)  # of 72 training articles
HELD_OUT = Size(people=60, towns=14, guilds=55, works=55, events=30, rivers=10)  # of 224 held-out articles
READ, LABELLED, ASKED = 0.5, 0.05, 0.5  # share of rare words: encyclopedia, training labels, validation labels


def write_sample(folder: Path, settings: SampleSettings) -> None:
    """Write the corpus into `folder`, the same bytes for the same settings."""

    def rng(purpose: str) -> random.Random:
        return random.Random(f"{settings.seed} {purpose}")

    names = NameMaker(rng("names"))
    worlds = {"train": build_world(rng("train world"), names, SHARES.times(settings.articles / 72))}
    held_out = HELD_OUT.times(settings.held_out_articles / 224)
    worlds |= {part: build_world(rng(f"{part} world"), names, held_out) for part in ("valid", "test")}
    for part, world in worlds.items():
        articles = write_articles(rng(f"{part} articles"), world, Style(part != "train", READ))
        _write(text_path(running_text(folder), part), _wikitext(articles))
    written: set[str] = set()
    for part, world, style, reviews in (
        ("train", worlds["train"], Style(False, LABELLED), settings.reviews),
        ("dev", worlds["valid"], Style(True, ASKED), settings.held_out_reviews),
    ):
        rows = write_reviews(rng(f"{part} reviews"), world, reviews, style, without=written)
        written.update(text for text, _ in rows)
        _write(sentences_path(folder, part), ["sentence\tlabel\n", *(f"{text}\t{label}\n" for text, label in rows)])
        asked = write_articles(rng(f"{part} passages"), world, style)[: settings.questioned]
        document = write_questions(rng(f"{part} questions"), asked, style, part)
        _write(questions_path(folder, part), [json.dumps(document, indent=1) + "\n"])


def _wikitext(articles: list[Article]) -> Iterable[str]:
    for article in articles:
        yield f" \n = {article.subject.title} = \n \n"
        yield from (f" {paragraph} \n" for paragraph in article.paragraphs)


def _write(path: Path, parts: Iterable[str]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("w", encoding="utf-8", newline="\n") as file:
        file.writelines(parts)
