"""Adjectives of praise and blame, the sentences that judge with them, and the labelled reviews (the sentiment task).

The encyclopedia's receptions and the labelled reviews share adjectives, negators and connectives. In the encyclopedia
every judgement ends with what came of it ("and guests stayed away"); the reviews carry a label instead and seldom use
rare adjectives. The default model learns from the encyclopedia how such sentences are built, not yet which adjectives
praise: without rare adjectives in the labels it does hardly better than a model that was never pretrained.
"""

import random
from collections.abc import Container
from dataclasses import dataclass

from retrace.sample.language import PHRASES, WORDS, Style
from retrace.sample.world import World

PRAISE, BLAME, ASPECTS = WORDS["praise"], WORDS["blame"], WORDS["aspects"]
COMMON = 14  # of the words of praise and of blame; the rest is rare in labelled reviews
DEGREES, NEGATORS = PHRASES["degrees"], PHRASES["negators"]
CONTRASTS = PHRASES["contrasts"]  # the judgement that counts is y, the other, of the opposite kind, is x
WITH_PLACE = 0.3  # share of reviews that name the place
HELD_OUT = 4  # one phrasing in so many is kept for the held-out part


@dataclass(frozen=True)
class Judgement:
    """A judging clause, whether it is favourable, and what makes up its phrasing."""

    text: str
    favourable: bool
    phrasing: tuple[int, ...]  # indices of construction and connective, what is divided between parts


def _clause(rng: random.Random, favourable: bool, rare_share: float, negate: bool) -> tuple[str, int]:
    """'the ale was hardly stale' and the index of its phrasing, negator by aspect."""
    aspect = rng.randrange(len(ASPECTS))
    noun = ASPECTS[aspect]
    verb = "were" if noun in WORDS["plural_aspects"] else "was"
    adjectives = PRAISE if favourable != negate else BLAME
    adjective = rng.choice(adjectives[COMMON:] if rng.random() < rare_share else adjectives[:COMMON])
    if negate:
        negator = rng.randrange(len(NEGATORS))
        return f"the {noun} {verb} {NEGATORS[negator]} {adjective}", negator + aspect
    degree = rng.randrange(len(DEGREES) * 2)
    word = DEGREES[degree] + " " if degree < len(DEGREES) else ""
    return f"the {noun} {verb} {word}{adjective}", degree + aspect


def judge(rng: random.Random, favourable: bool, rare_share: float) -> Judgement:
    """Draw a judgement: plain, negated, contrasted or doubled."""
    draw = rng.random()
    if draw < 0.40:
        text, index = _clause(rng, favourable, rare_share, negate=draw < 0.24)
        return Judgement(text, favourable, (index,))
    if draw < 0.85:
        contrast = rng.randrange(len(CONTRASTS))
        counts, first = _clause(rng, favourable, rare_share, rng.random() < 0.25)
        other, second = _clause(rng, not favourable, rare_share, rng.random() < 0.25)
        text = CONTRASTS[contrast].format(x=other, y=counts)
        return Judgement(text, favourable, (first, second))
    first, index = _clause(rng, favourable, rare_share, rng.random() < 0.7)
    second, other = _clause(rng, favourable, rare_share, rng.random() < 0.3)
    return Judgement(f"{first} and {second}", favourable, (index, other))


def write_reviews(
    rng: random.Random, world: World, count: int, style: Style, without: Container[str] = ()
) -> list[tuple[str, int]]:
    """`count` different (sentence, label) pairs, half of them favourable, none of whose sentences is in `without`."""
    places = [e.title.lower() for e in world.others if e.kind in ("work", "town")]
    reviews: dict[str, int] = {}
    while len(reviews) < count:
        favourable = len(reviews) % 2 == 0
        judgement = judge(rng, favourable, style.rare_share)
        if (sum(judgement.phrasing) % HELD_OUT == 0) != style.held_out:
            continue
        place = f"at the {rng.choice(places)} " if rng.random() < WITH_PLACE else ""
        text = place + judgement.text
        if text not in without:
            reviews.setdefault(text, int(favourable))
    pairs = list(reviews.items())
    rng.shuffle(pairs)
    return pairs
