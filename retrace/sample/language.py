"""The language of the corpus, from words.json: relations and the nouns that name them; judgements that praise or blame.

Every relation has seven synonymous nouns ("founder", "originator"). Each is too rare in the labelled questions to teach
what it asks for, a person, a year or a river; the encyclopedia teaches that. All relations share the same frames: no
"who" or "when" gives the kind of answer away.

No subject has two relations with the same kind of answer. A small model learns from the encyclopedia which kind of
answer goes with a noun, and little else; if a guild had both a founder and a head, the answer to a question for one of
them would be a guess, and the score a matter of luck.

A phrasing is a pair: of a statement or question (frame, noun), of a judgement (aspect, degree or negator). They are
divided between training and held-out parts such that both use every word, yet no held-out phrasing occurs in training.

The encyclopedia's receptions and the labelled reviews (the sentiment task) share adjectives, negators and connectives.
In the encyclopedia every judgement ends with its consequence ("and guests stayed away"); reviews carry a label instead,
and seldom use rare adjectives. From the encyclopedia the default model learns how such sentences are built, but not
which adjectives praise: without rare adjectives in the labels it does hardly better than one never pretrained.
"""

import random
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from retrace.core.files import read_json

_FILE = read_json(Path(__file__).with_name("words.json"))
WORDS: dict[str, list[str]] = {name: words.split() for name, words in _FILE["words"].items()}
PHRASES: dict[str, list[str]] = _FILE["phrases"]
# {n}: the noun; {s}: the subject; {a}: the answer.
STATEMENTS, QUESTIONS = PHRASES["statements"], PHRASES["questions"]

PRAISE, BLAME, ASPECTS = WORDS["praise"], WORDS["blame"], WORDS["aspects"]
COMMON = 14  # of the words of praise and of blame; the rest is rare in labelled reviews
DEGREES, NEGATORS = PHRASES["degrees"], PHRASES["negators"]
CONTRASTS = PHRASES["contrasts"]  # {y}: the judgement that decides the label; {x}: one of the opposite kind
WITH_PLACE = 0.3  # share of reviews that name the place
HELD_OUT = 4  # one of this many phrasings of judgements is kept for the held-out parts

SHOWN: dict[str, str] = _FILE["shown"]  # how a sentence names an answer, by its kind
SHORT_NAMES: dict[str, str] = _FILE["short_names"]  # by kind of subject, from an article's second sentence on


@dataclass(frozen=True)
class Style:
    """How a part of the corpus is worded."""

    held_out: bool  # whether its phrasings are those of the held-out parts
    rare_share: float  # share of judgements that use a rare adjective


@dataclass(frozen=True)
class Relation:
    """A kind of fact about one kind of subject."""

    name: str
    answer: str  # the kind of its answers, a key of SHOWN
    like: str  # a class of kinds of answers, which are plausible for one another
    nouns: tuple[str, ...]


RELATIONS = {
    name: Relation(name, entry["answer"], _FILE["like"][entry["answer"]], tuple(entry["nouns"].split()))
    for name, entry in _FILE["relations"].items()
}
BY_KIND = {kind: [RELATIONS[name] for name in names.split()] for kind, names in _FILE["relations_of"].items()}


def is_held_out(frame: int, noun: int) -> bool:
    """Whether the phrasing (frame, noun) is kept for the held-out parts: 7 of 35."""
    return (frame + 2 * noun) % 5 == 0


def state(rng: random.Random, relation: Relation, style: Style, subject: str, answer: str) -> str:
    """A statement in a phrasing of the part, without a full stop."""
    frame, noun = _phrase(rng, relation, style)
    return STATEMENTS[frame].format(n=relation.nouns[noun], s=subject, a=SHOWN[relation.answer].format(answer))


def ask(rng: random.Random, relation: Relation, style: Style, subject: str) -> str:
    """A question about `subject` in a phrasing of the part, with question mark or full stop."""
    frame, noun = _phrase(rng, relation, style)
    text = QUESTIONS[frame].format(n=relation.nouns[noun], s=subject)
    return text[0].upper() + text[1:]


def _phrase(rng: random.Random, relation: Relation, style: Style) -> tuple[int, int]:
    while True:
        frame, noun = rng.randrange(len(STATEMENTS)), rng.randrange(len(relation.nouns))
        if is_held_out(frame, noun) == style.held_out:
            return frame, noun


def _clause(rng: random.Random, favourable: bool, style: Style, negate: bool) -> str:
    """A clause such as 'the ale was hardly stale', in a phrasing of the part."""
    aspect = rng.randrange(len(ASPECTS))
    noun = ASPECTS[aspect]
    verb = "were" if noun in WORDS["plural_aspects"] else "was"
    words = NEGATORS if negate else [*DEGREES, *[""] * len(DEGREES)]  # half of them without a degree
    fitting = [word for word in words if ((aspect + words.index(word)) % HELD_OUT == 0) == style.held_out]
    adjectives = PRAISE if favourable != negate else BLAME
    adjective = rng.choice(adjectives[COMMON:] if rng.random() < style.rare_share else adjectives[:COMMON])
    return " ".join(filter(None, ("the", noun, verb, rng.choice(fitting), adjective)))


def judge(rng: random.Random, favourable: bool, style: Style) -> str:
    """A judgement, plain, negated, contrasted or double."""
    draw = rng.random()
    if draw < 0.40:
        return _clause(rng, favourable, style, negate=draw < 0.24)
    if draw < 0.85:
        counts = _clause(rng, favourable, style, rng.random() < 0.25)
        other = _clause(rng, not favourable, style, rng.random() < 0.25)
        return rng.choice(CONTRASTS).format(x=other, y=counts)
    first = _clause(rng, favourable, style, rng.random() < 0.7)
    second = _clause(rng, favourable, style, rng.random() < 0.3)
    return f"{first} and {second}"


def write_reviews(rng: random.Random, places: Sequence[str], count: int, style: Style) -> list[tuple[str, int]]:
    """`count` distinct (sentence, label) pairs, half of them favourable."""
    reviews: dict[str, int] = {}
    while len(reviews) < count:
        favourable = len(reviews) % 2 == 0
        place = f"at the {rng.choice(places)} " if rng.random() < WITH_PLACE else ""
        reviews.setdefault(place + judge(rng, favourable, style), int(favourable))
    pairs = list(reviews.items())
    rng.shuffle(pairs)
    return pairs
