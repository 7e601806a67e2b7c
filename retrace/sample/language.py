"""What the encyclopedia can say: relations, the nouns that name them, and the frames around the nouns, in words.json.

Every relation has seven nouns for one meaning ("founder", "originator"). There are so many of them that the labelled
questions have each too seldom to teach what it asks for, a person or a year or a river; the encyclopedia does. The
frames are the same for all relations: no "who" or "when" gives the kind of answer away.

No subject has two relations with the same kind of answer. A small model learns from the encyclopedia which kind of
answer goes with a noun, and little else; had a guild both a founder and a head, which of the two a question asks for
would be a guess, and the score a matter of luck.

A phrasing is a pair (frame, noun). Phrasings are divided between the training part and the held-out part by
`is_held_out`, so both parts know every frame and every noun, yet no phrasing of a held-out statement or question was
seen in training.
"""

import random
from dataclasses import dataclass
from pathlib import Path

from retrace.core.files import read_json

_FILE = read_json(Path(__file__).with_name("words.json"))
WORDS: dict[str, list[str]] = {name: words.split() for name, words in _FILE["words"].items()}
PHRASES: dict[str, list[str]] = _FILE["phrases"]
# {n}: the noun; {s}: the subject; {a}: the answer.
STATEMENTS, QUESTIONS = PHRASES["statements"], PHRASES["questions"]

# Kinds of answers, and how a sentence names one of them.
SHOWN = {
    "person": "{}", "fellowship": "the {}", "town": "the town of {}", "river": "the waters of the {}",
    "animal": "the {}", "good": "{}", "stone": "solid {}", "meal": "a plate of {}", "flower": "a bunch of {}",
    "colour": "a bright {}", "year": "the year {}", "count": "{} in all", "feast": "the eve of {}",
}  # fmt: skip

# Kinds that a hasty reader takes for one another: what makes a wrong answer plausible.
LIKE = {
    "person": "people", "fellowship": "people", "town": "places", "river": "places", "animal": "things",
    "good": "things", "stone": "things", "meal": "things", "flower": "things", "colour": "things",
    "year": "times", "count": "times", "feast": "times",
}  # fmt: skip


@dataclass(frozen=True)
class Style:
    """How a part of the corpus is worded."""

    held_out: bool  # whether its phrasings are those kept for the held-out parts
    rare_share: float  # how often a judgement is put in a rare word


@dataclass(frozen=True)
class Relation:
    """A kind of fact about one kind of subject."""

    name: str
    answer: str  # the kind of its answers, a key of SHOWN
    nouns: tuple[str, ...]


RELATIONS = {
    name: Relation(name, relation["answer"], tuple(relation["nouns"].split()))
    for name, relation in _FILE["relations"].items()
}
BY_KIND = {kind: [RELATIONS[name] for name in names.split()] for kind, names in _FILE["relations_of"].items()}


def is_held_out(frame: int, noun: int) -> bool:
    """Whether the phrasing (frame, noun) is kept for the held-out parts: 7 of 35."""
    return (frame + 2 * noun) % 5 == 0


def phrase(rng: random.Random, relation: Relation, style: Style) -> tuple[int, int]:
    """Draw a phrasing (frame, noun) that belongs to the part."""
    while True:
        frame, noun = rng.randrange(len(STATEMENTS)), rng.randrange(len(relation.nouns))
        if is_held_out(frame, noun) == style.held_out:
            return frame, noun


def state(relation: Relation, frame: int, noun: int, subject: str, answer: str) -> str:
    """A statement without its full stop."""
    return STATEMENTS[frame].format(n=relation.nouns[noun], s=subject, a=SHOWN[relation.answer].format(answer))


def ask(relation: Relation, frame: int, noun: int, subject: str) -> str:
    """A question about `subject`, with its question mark or full stop."""
    text = QUESTIONS[frame].format(n=relation.nouns[noun], s=subject)
    return text[0].upper() + text[1:]
