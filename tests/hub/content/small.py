"""The data of the studies' small runs: a small sample corpus, and tasks on articles of further worlds and on reviews.

News topics and citation intents are the kinds of articles; restaurants come from the reviews.
"""

import json
import random
import re
import tempfile
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any
from xml.sax.saxutils import quoteattr

from retrace.datasets.examples import Example
from retrace.datasets.source import Source
from retrace.datasets.squad import Question
from retrace.sample.corpus import HELD_OUT, READ, Article, SampleSettings, write_articles, write_sample
from retrace.sample.language import Style
from retrace.sample.world import NameMaker, build_world, sizes_of
from tests.hub.content.datasets import read_source

SIZE = SampleSettings(articles=144, reviews=600, questioned=120, held_out_articles=50, held_out_reviews=300)
WORLDS = {"train": 2.2, "dev": 1.0, "test": 1.0}  # of news and citations, by the size of the sample's held-out world
TOPICS = {"town": 0, "event": 1, "guild": 2, "work": 3}  # of AG News: world, sports, business, science
PURPOSES = {
    "person": "Background", "town": "Uses", "guild": "CompareOrContrast", "work": "Motivation", "event": "Extends",
    "river": "Future",
}  # fmt: skip
RESTAURANTS = {"Restaurants_Train.xml": ("train", 300), "Restaurants_Test_Gold.xml": ("dev", 150)}  # so many reviews


@dataclass(frozen=True)
class Small:
    """All of it."""

    text: dict[str, list[str]]  # lines by part
    sentences: dict[str, list[Example]]
    questions: dict[str, list[Question]]  # of SQuAD 2.0: a third without an answer
    news: dict[str, list[dict[str, Any]]]  # text and label, a number
    files: dict[str, dict[str, str]]  # of tasks that are one's own files: folder → name → content

    @property
    def answerable(self) -> dict[str, list[Question]]:
        """Those of SQuAD 1.1."""
        return {part: [each for each in questions if each.answers] for part, questions in self.questions.items()}

    @property
    def documents(self) -> list[str]:
        """All that there is to train on, by which tokenizers are trained."""
        asked = self.questions["train"]
        return [
            *filter(str.strip, self.text["train"]),
            *(sentence.text for sentence in self.sentences["train"]),
            *dict.fromkeys(question.context for question in asked),
            *(question.text for question in asked),
            *(row["text"] for row in self.news["train"]),
        ]


@cache
def small_data() -> Small:
    """The same each time."""
    with tempfile.TemporaryDirectory() as made:
        source = Source.within(Path(made))
        write_sample(source, SIZE)
        text, sentences, questions = read_source(source)
    names = NameMaker(random.Random("names of news"))
    articles = {part: _articles(part, names, size) for part, size in WORLDS.items()}
    citations = {
        f"{part}.jsonl": "".join(json.dumps(row) + "\n" for row in _labelled(of, PURPOSES))
        for part, of in articles.items()
    }
    restaurants = {name: _restaurants(sentences[part][:count]) for name, (part, count) in RESTAURANTS.items()}
    return Small(
        text, sentences, questions, news={part: _labelled(articles[part], TOPICS) for part in ("train", "test")},
        files={"acl-arc": citations, "semeval14-restaurants": restaurants},
    )  # fmt: skip


def _articles(part: str, names: NameMaker, size: float) -> list[Article]:
    """The articles of a world, which shares no name with another one."""
    rng = random.Random(part)
    return write_articles(rng, build_world(rng, names, sizes_of(HELD_OUT, size)), Style(False, READ))


def _labelled(articles: Iterable[Article], labels: dict[str, Any]) -> list[dict[str, Any]]:
    """The articles on some kinds of things."""
    return [
        {"text": article.paragraphs[0], "label": labels[article.subject.kind]}
        for article in articles if article.subject.kind in labels
    ]  # fmt: skip


def _restaurants(sentences: Iterable[Example]) -> str:
    """Reviews with the aspect whose judgement is the label; every sixth says nothing about it, some say both."""
    rows = []
    for number, sentence in enumerate(sentences):
        text, polarity = sentence.text, ("negative", "positive")[sentence.label]
        judged = list(re.finditer(r"\bthe (\w+) (?:was|were) ", text))
        found = judged[0 if re.search(" , (?:although|even if) ", text) else -1]  # in a contrast, the main clause
        term = found[1]
        if number % 6 == 0:
            text, polarity = f"we came here for the {term} .", "neutral"
        elif number % 40 == 1:
            text, polarity = f"the {term} was lovely at first , but then it was grim .", "conflict"
        start = found.start(1) if text == sentence.text else text.index(term)
        rows.append(
            f'<sentence id="{number}"><text>{text}</text><aspectTerms><aspectTerm term={quoteattr(term)} '
            f'polarity="{polarity}" from="{start}" to="{start + len(term)}"/></aspectTerms></sentence>\n'
        )
    return f"<sentences>\n{''.join(rows)}</sentences>\n"
