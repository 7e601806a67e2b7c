"""The generated sample corpus: an encyclopedia of an invented country, reviews and questions.

Three worlds, for training, validation and test, share no entity, and the held-out ones are worded in phrasings that
training never uses. Each of many nouns occurs only rarely in the labelled questions, so a model that has read the
encyclopedia knows more than the labels teach. The labelled reviews seldom use rare adjectives, but the validation
reviews often do: a bag of words hardly learns them. A model that has read the encyclopedia learns them from few labels,
although reading alone does not tell it which ones praise.

An article is a paragraph of facts, the same facts in other words, which stand for an encyclopedia's summary box, and a
reception or a list of deeds. A person's deeds are facts of other articles, told from the other side, and agree with
these.

Questions are on first paragraphs, in the style of SQuAD v2.0. A third of them have no answer: they ask for a fact that
the paragraph omits. What a hasty reader might take for the answer, such as a town if a river was asked for, is the
plausible answer; if the paragraph names nothing of the sort, it is any other fact.
"""

import json
import random
import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Self

from pydantic import Field, model_validator

from retrace.core.files import write_text
from retrace.core.paths import questions_path
from retrace.core.settings import Section, require
from retrace.datasets.examples import SENTIMENTS, Example, TaskData, write_task
from retrace.datasets.settings import SourceParams
from retrace.datasets.source import Source
from retrace.datasets.text import text_path
from retrace.sample.language import BY_KIND, PHRASES, SHORT_NAMES, Relation, Style, ask, judge, state, write_reviews
from retrace.sample.world import RIVER_NAMES, Entity, NameMaker, build_world, sizes_of

# How many of 72 training articles, and of 224 held-out ones, are about each kind. A name that a model misreads is the
# answer to many questions, so with few towns or rivers the score would be a matter of luck.
SHARES = {"people": 22, "towns": 4, "guilds": 18, "works": 18, "events": 6, "rivers": 4}
HELD_OUT = {"people": 60, "towns": 24, "guilds": 45, "works": 45, "events": 26, "rivers": 24}
READ, LABELLED, ASKED = 0.7, 0.12, 0.5  # share of rare adjectives: encyclopedia, training labels, validation labels
TOLD = 4  # facts in an article; others are left out
DEEDS = 2  # at most, in an article on a person
JUDGEMENTS = 2  # in any other article
ASIDE_SHARE = 0.2
UNANSWERABLE = 1 / 3  # of the questions
PER_ARTICLE = 4  # questions


class SampleSettings(Section):
    """The size of the sample corpus."""

    seed: int = Field(default=1, description="seed of the corpus")
    articles: int = Field(default=5600, ge=72, description="approximate number of articles in training")
    reviews: int = Field(default=14000, ge=2, description="number of labelled sentences in training")
    questioned: int = Field(
        default=1200, ge=1, description="training articles with four questions each; validation has at most as many"
    )
    held_out_articles: int = Field(
        default=224, ge=24, description="approximate number of articles in validation, and in test"
    )
    held_out_reviews: int = Field(default=800, ge=2, description="number of labelled sentences in validation")

    @model_validator(mode="after")
    def _enough_articles_and_names(self) -> Self:
        made = sum(self.worlds["train"].values())
        require(self.questioned <= made, "questioned", self.questioned, f"expected at most articles ({made})")
        rivers = sum(size["rivers"] for size in self.worlds.values())
        allowed = f"with held_out_articles it takes {rivers:,} rivers, and there are names for {RIVER_NAMES:,}"
        require(rivers <= RIVER_NAMES, "articles", self.articles, allowed)
        return self

    @property
    def worlds(self) -> dict[str, dict[str, int]]:
        """The number of entities of each kind in each world."""
        held_out = sizes_of(HELD_OUT, self.held_out_articles / 224)
        return {"train": sizes_of(SHARES, self.articles / 72), "valid": held_out, "test": held_out}


class SampleParams(SourceParams):
    """What stages/sources/sample.py reads."""

    sample: SampleSettings = Field(alias="data/params.yaml:sample")


@dataclass(frozen=True)
class StatedFact:
    """A fact, and the sentence of a paragraph that tells it."""

    relation: Relation
    answer: str
    sentence: str


@dataclass(frozen=True)
class Article:
    """One encyclopedia article."""

    subject: Entity
    facts: tuple[StatedFact, ...]  # the first paragraph, sentence by sentence
    paragraphs: tuple[str, ...]


def write_sample(source: Source, settings: SampleSettings) -> None:
    """Write the corpus, the same bytes for the same settings."""

    def rng(purpose: str) -> random.Random:
        return random.Random(f"{settings.seed} {purpose}")

    names = NameMaker(rng("names"))
    worlds = {part: build_world(rng(f"{part} world"), names, size) for part, size in settings.worlds.items()}
    for part, world in worlds.items():
        articles = write_articles(rng(f"{part} articles"), world, Style(part != "train", READ))
        write_text(text_path(source.text, part), _wikitext(articles))
    written: dict[str, list[Example]] = {}
    for part, world, style, reviews in (
        ("train", worlds["train"], Style(False, LABELLED), settings.reviews),
        ("dev", worlds["valid"], Style(True, ASKED), settings.held_out_reviews),
    ):
        places = [e.title.lower() for e in world if e.kind in ("work", "town")]
        rows = write_reviews(rng(f"{part} reviews"), places, reviews, style)
        written[part] = [Example(text, None, label) for text, label in rows]
        asked = write_articles(rng(f"{part} passages"), world, style)[: settings.questioned]
        document = write_questions(rng(f"{part} questions"), asked, style, part)
        write_text(questions_path(source.squad, part), json.dumps(document, indent=1) + "\n")
    write_task(source.sst2, TaskData(SENTIMENTS, written))


def _wikitext(articles: Iterable[Article]) -> str:
    lines = []
    for article in articles:
        lines += ["", f"= {article.subject.title} =", "", *article.paragraphs]
    return "".join(f" {line} \n" if line else " \n" for line in lines)


def write_articles(rng: random.Random, world: Iterable[Entity], style: Style) -> list[Article]:
    """One article per entity, in random order."""
    articles = [_article(rng, entity, style) for entity in world]
    rng.shuffle(articles)
    return articles


def _article(rng: random.Random, entity: Entity, style: Style) -> Article:
    relations = rng.sample(BY_KIND[entity.kind], TOLD)
    short = SHORT_NAMES.get(entity.kind) or entity.name.split()[0]
    facts = []
    for position, relation in enumerate(relations):
        answer = entity.facts[relation.name]
        said = _say(rng, relation, short if position else entity.name, answer, style)
        facts.append(StatedFact(relation, answer, said))
    again = [_say(rng, fact.relation, short, fact.answer, style) for fact in rng.sample(facts, len(facts))]
    last = _deeds(rng, entity, style) if entity.kind == "person" else _reception(rng, entity, style)
    paragraphs = [" ".join(fact.sentence for fact in facts), " ".join(again), " ".join(last)]
    return Article(entity, tuple(facts), tuple(paragraph for paragraph in paragraphs if paragraph))


def _say(rng: random.Random, relation: Relation, subject: str, answer: str, style: Style) -> str:
    statement = state(rng, relation, style, subject, answer)
    aside = rng.choice(PHRASES["asides"]) if rng.random() < ASIDE_SHARE else ""
    return _sentence(statement + aside)


def _deeds(rng: random.Random, person: Entity, style: Style) -> list[str]:
    deeds = rng.sample(person.deeds, min(DEEDS, len(person.deeds)))
    return [_say(rng, relation, entity.name, person.name, style) for entity, relation in deeds]


def _reception(rng: random.Random, entity: Entity, style: Style) -> list[str]:
    favourable = rng.random() < 0.5
    sentences = []
    for _ in range(JUDGEMENTS):
        end = rng.choice(PHRASES["good_ends" if favourable else "bad_ends"])
        sentences.append(_sentence(f"in {entity.title} {judge(rng, favourable, style)} , {end}"))
    return sentences


def _sentence(text: str) -> str:
    return text[0].upper() + text[1:] + " ."


def write_questions(rng: random.Random, articles: list[Article], style: Style, prefix: str) -> dict[str, Any]:
    """A SQuAD v2.0 document of questions on `articles`, with ids that begin with `prefix`."""
    data = []
    for number, article in enumerate(articles):
        context, starts = _context(article)
        told = [(fact.relation, fact) for fact in rng.sample(article.facts, len(article.facts))]
        left_out = _left_out(rng, article)
        qas = []
        for position in range(PER_ARTICLE):
            is_impossible = rng.random() < UNANSWERABLE
            relation, fact = (left_out if is_impossible else told).pop()
            start = starts[fact]
            answers = [{"text": context[start : start + len(fact.answer)], "answer_start": start}]
            qa = {
                "id": f"{prefix}-{number:04d}-{position}",
                "question": ask(rng, relation, style, article.subject.name),
                "answers": [] if is_impossible else answers,
                "is_impossible": is_impossible,
            }
            qas.append(qa | ({"plausible_answers": answers} if is_impossible else {}))
        data.append({"title": article.subject.title, "paragraphs": [{"context": context, "qas": qas}]})
    return {"version": "v2.0", "data": data}


def _left_out(rng: random.Random, article: Article) -> list[tuple[Relation, StatedFact]]:
    """Relations that the paragraph leaves out, each with a told fact as its plausible answer, in random order."""
    told = {fact.relation.name for fact in article.facts}
    found = []
    for relation in BY_KIND[article.subject.kind]:
        if relation.name not in told:
            like = [fact for fact in article.facts if fact.relation.like == relation.like]
            found.append((relation, rng.choice(like or article.facts)))
    rng.shuffle(found)
    return found


def _context(article: Article) -> tuple[str, dict[StatedFact, int]]:
    """The first paragraph as running text, and the offset of each fact's answer in it."""
    context, starts = "", {}
    for fact in article.facts:
        sentence = fact.sentence.replace(" ,", ",").replace(" .", ".")
        (found,) = re.finditer(rf"\b{re.escape(fact.answer)}\b", sentence, re.IGNORECASE)
        starts[fact] = len(context) + found.start()
        context += f"{sentence} "
    return context.removesuffix(" "), starts
