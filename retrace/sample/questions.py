"""Questions on the articles' first paragraphs: the reading task of the sample, in the style of SQuAD v2.0.

A third of them have no answer: they ask for something that holds but that the paragraph leaves out,
while it names something that a hasty reader could take for it, a town where a river was asked for.
That is kept as the plausible answer.
"""

import random
from typing import Any

from retrace.sample.encyclopedia import Article, StatedFact, phrase
from retrace.sample.relations import BY_KIND, LIKE, Relation, Style, ask

UNANSWERABLE = 1 / 3
PER_ARTICLE = 4


def write_questions(rng: random.Random, articles: list[Article], style: Style, prefix: str) -> dict[str, Any]:
    """A SQuAD v2.0 document over `articles`, ids beginning with `prefix`."""
    data = []
    for number, article in enumerate(articles):
        context, starts = _context(article)
        told = rng.sample(article.facts, len(article.facts))
        left_out = _left_out(rng, article)
        qas = []
        for position in range(PER_ARTICLE):
            without = bool(left_out) and rng.random() < UNANSWERABLE
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
        like = [fact for fact in article.facts if LIKE[fact.relation.answer] == LIKE[relation.answer]]
        if relation.name not in told and like:
            found.append((relation, rng.choice(like)))
    rng.shuffle(found)
    return found


def _context(article: Article) -> tuple[str, dict[StatedFact, int]]:
    """The first paragraph as running text, and where each fact's answer starts in it."""
    sentences, starts, position = [], {}, 0
    for fact in article.facts:
        sentence = fact.sentence.replace(" ,", ",").replace(" .", ".")
        starts[fact] = position + sentence.lower().index(fact.answer.lower())
        sentences.append(sentence)
        position += len(sentence) + 1
    return " ".join(sentences), starts
