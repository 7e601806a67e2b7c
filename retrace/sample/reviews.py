"""Labelled reviews: the sentiment task of the sample, in the style of SST-2."""

import random
from collections.abc import Container

from retrace.sample.encyclopedia import Style
from retrace.sample.opinions import judge
from retrace.sample.world import World

WITH_PLACE = 0.3  # share of reviews that name the place
HELD_OUT = 4  # one phrasing in so many is kept for the held-out part


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
