"""Articles, and questions on their first paragraphs in the style of SQuAD v2.0.

An article is a paragraph of facts, the same facts again in other words, and a reception or a list of deeds.
The restatement is what an encyclopedia's summary box is, and it teaches a language model to look a
fact up; a person's deeds are the facts of other articles from the other side, and agree with them.

A third of the questions have no answer: they ask for something that holds but that the paragraph leaves out.
What a hasty reader could take for it, a town where a river was asked for, is kept as the plausible answer; if the
paragraph names nothing of the sort, any other fact.
"""

import random
import re
from dataclasses import dataclass
from typing import Any

from retrace.sample.language import BY_KIND, LIKE, PHRASES, Relation, Style, ask, judge, phrase, state
from retrace.sample.world import Entity, World

TOLD = 4  # facts an article tells; the rest of what holds is left out
DEEDS = 2
ASIDE_SHARE = 0.2
UNANSWERABLE = 1 / 3
PER_ARTICLE = 4  # questions
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
    frame, noun = phrase(rng, relation, style)
    aside = rng.choice(PHRASES["asides"]) if rng.random() < ASIDE_SHARE else ""
    return _sentence(state(relation, frame, noun, subject, answer) + aside)


def _deeds(rng: random.Random, person: Entity, style: Style) -> list[str]:
    deeds = rng.sample(person.deeds, min(DEEDS, len(person.deeds)))
    return [_say(rng, relation, entity.name, person.name, style) for entity, relation in deeds]


def _reception(rng: random.Random, entity: Entity, style: Style) -> list[str]:
    favourable = rng.random() < 0.5
    sentences = []
    for _ in range(rng.randint(1, 2)):
        judgement, _ = judge(rng, favourable, style.rare_share)
        end = rng.choice(PHRASES["good_ends" if favourable else "bad_ends"])
        sentences.append(_sentence(f"in {entity.title} {judgement} , {end}"))
    return sentences


def _sentence(text: str) -> str:
    return text[0].upper() + text[1:] + " ."


def write_questions(rng: random.Random, articles: list[Article], style: Style, prefix: str) -> dict[str, Any]:
    """A SQuAD v2.0 document over `articles`, ids beginning with `prefix`."""
    data = []
    for number, article in enumerate(articles):
        context, starts = _context(article)
        told = rng.sample(article.facts, len(article.facts))
        left_out = _left_out(rng, article)
        qas = []
        for position in range(PER_ARTICLE):
            without = rng.random() < UNANSWERABLE
            relation, fact = left_out.pop() if without else ((fact := told.pop()).relation, fact)
            start = starts[fact]
            answer = {"text": context[start : start + len(fact.answer)], "answer_start": start}
            frame, noun = phrase(rng, relation, style)
            qas.append(
                {
                    "id": f"{prefix}-{number:04d}-{position}",
                    "question": ask(relation, frame, noun, article.subject.name),
                    "answers": [] if without else [answer],
                    "is_impossible": without,
                    **({"plausible_answers": [answer]} if without else {}),
                }
            )
        data.append({"title": article.subject.title, "paragraphs": [{"context": context, "qas": qas}]})
    return {"version": "v2.0", "data": data}


def _left_out(rng: random.Random, article: Article) -> list[tuple[Relation, StatedFact]]:
    """Relations that the paragraph leaves out, each with the told fact that is taken for it, in random order."""
    told = {fact.relation.name for fact in article.facts}
    found = []
    for relation in BY_KIND[article.subject.kind]:
        if relation.name not in told:
            like = [fact for fact in article.facts if LIKE[fact.relation.answer] == LIKE[relation.answer]]
            found.append((relation, rng.choice(like or article.facts)))
    rng.shuffle(found)
    return found


def _context(article: Article) -> tuple[str, dict[StatedFact, int]]:
    """The first paragraph as running text, and where each fact's answer starts in it."""
    sentences, starts, position = [], {}, 0
    for fact in article.facts:
        sentence = fact.sentence.replace(" ,", ",").replace(" .", ".")
        (found,) = re.finditer(rf"\b{re.escape(fact.answer)}\b", sentence, re.IGNORECASE)
        starts[fact] = position + found.start()
        sentences.append(sentence)
        position += len(sentence) + 1
    return " ".join(sentences), starts
