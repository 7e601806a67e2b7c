"""Articles: a paragraph of facts, the same facts again in other words, and a reception or a list of deeds.

The restatement is what an encyclopedia's summary box is, and it teaches a language model to look a
fact up; a person's deeds are the facts of other articles from the other side, and agree with them.
"""

import random
from dataclasses import dataclass

from retrace.sample.opinions import BAD_ENDS, GOOD_ENDS, judge
from retrace.sample.relations import BY_KIND, COMMON, STATEMENTS, Relation, Style, is_held_out, state
from retrace.sample.world import Entity, World

TOLD = 4  # facts an article tells; the rest of what holds is left out
DEEDS = 2
ASIDES = (
    " by all accounts",
    " as the elders tell it",
    " , or so it is said",
    " , which nobody doubts",
    " in those days",
)
ASIDE_SHARE = 0.2
SHORT_NAMES = {
    "guild": "the guild", "work": "the building", "town": "the town", "event": "the struggle", "river": "the stream",
}  # fmt: skip


@dataclass(frozen=True)
class StatedFact:
    """A fact as a paragraph says it."""

    relation: Relation
    answer: str
    sentence: str


@dataclass(frozen=True)
class Article:
    """One encyclopedia article."""

    subject: Entity
    facts: tuple[StatedFact, ...]  # the first paragraph, sentence by sentence
    paragraphs: tuple[str, ...]


def write_articles(rng: random.Random, world: World, style: Style) -> list[Article]:
    """One article an entity, in random order."""
    articles = [_article(rng, entity, style) for entity in world.entities]
    rng.shuffle(articles)
    return articles


def phrase(rng: random.Random, relation: Relation, style: Style) -> tuple[int, int]:
    """Draw a phrasing (frame, noun) that belongs to the part."""
    while True:
        rare = rng.random() < style.rare_share
        noun = rng.randrange(COMMON, len(relation.nouns)) if rare else rng.randrange(COMMON)
        frame = rng.randrange(len(STATEMENTS))
        if is_held_out(frame, noun) == style.held_out:
            return frame, noun


def _article(rng: random.Random, entity: Entity, style: Style) -> Article:
    relations = rng.sample(BY_KIND[entity.kind], TOLD)
    short = SHORT_NAMES.get(entity.kind) or entity.name.split()[0]
    facts = []
    for position, relation in enumerate(relations):
        answer = entity.facts[relation.name]
        facts.append(
            StatedFact(relation, answer, _say(rng, relation, short if position else entity.name, answer, style))
        )
    again = [_say(rng, fact.relation, short, fact.answer, style) for fact in rng.sample(facts, len(facts))]
    last = _deeds(rng, entity, style) if entity.kind == "person" else _reception(rng, entity, style)
    paragraphs = [" ".join(fact.sentence for fact in facts), " ".join(again), " ".join(last)]
    return Article(entity, tuple(facts), tuple(paragraph for paragraph in paragraphs if paragraph))


def _say(rng: random.Random, relation: Relation, subject: str, answer: str, style: Style) -> str:
    frame, noun = phrase(rng, relation, style)
    aside = rng.choice(ASIDES) if rng.random() < ASIDE_SHARE else ""
    return _sentence(state(relation, frame, noun, subject, answer) + aside)


def _deeds(rng: random.Random, person: Entity, style: Style) -> list[str]:
    deeds = rng.sample(person.deeds, min(DEEDS, len(person.deeds)))
    return [_say(rng, relation, entity.name, person.name, style) for entity, relation in deeds]


def _reception(rng: random.Random, entity: Entity, style: Style) -> list[str]:
    favourable = rng.random() < 0.5
    sentences = []
    for _ in range(rng.randint(1, 2)):
        judgement = judge(rng, favourable, style.rare_share)
        end = rng.choice(GOOD_ENDS if favourable else BAD_ENDS)
        sentences.append(_sentence(f"in {entity.title} {judgement.text} , {end}"))
    return sentences


def _sentence(text: str) -> str:
    return text[0].upper() + text[1:] + " ."
