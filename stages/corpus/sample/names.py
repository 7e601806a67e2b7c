"""Names of an invented country: pronounceable, unique, and made from one seed.

Given names, family names and the parts of place names come from closed lists that every part of the
corpus shares and uses as often as Zipf's law has it, while no whole name occurs in two parts. A
held-out name is thus new, and yet spelt with pieces that a subword vocabulary has seen.
"""

import random
from collections.abc import Sequence

ONSETS = "b br c d dr f g gl h k l m n p r s sh st t th tr v w".split()
VOWELS = "a e i o u ai ea ou".split()
CODAS = "l m n r s rn rd sk nd lt x ss".split()

PLACES = "Mere Holt Wick Ford Stead Combe Gate Den Ley Ness Port Moor Hill Cross Green Bridge".split()
RIVER_ENDINGS = "el an is ow een ire und ak".split()
FAMILY_ENDINGS = "er en ow ick ard ell man son by ett".split()
GIVEN_ENDINGS = "a o in is el an eth ian ora ik".split()

GIVEN_NAMES, FAMILY_NAMES, TOWN_NAMES = 450, 1100, 250


class NameMaker:
    """Draws names; never the same one twice within a kind, over the maker's lifetime."""

    def __init__(self, rng: random.Random) -> None:
        self._rng = rng
        self._taken: set[str] = set()
        self._given = self._list(GIVEN_NAMES, GIVEN_ENDINGS)
        self._family = self._list(FAMILY_NAMES, FAMILY_ENDINGS)
        self._towns = self._list(TOWN_NAMES, [""])

    def person(self) -> str:
        """A given name and a family name, such as ``Drelin Houskard``."""
        return self._unique(self._given, self._family, between=" ")

    def town(self) -> str:
        """Two words, such as ``Brand Mere``."""
        return self._unique(self._towns, PLACES, between=" ")

    def river(self) -> str:
        """One word, such as ``Thorndel``."""
        return self._unique(self._towns, RIVER_ENDINGS, between="")

    def _list(self, count: int, endings: Sequence[str]) -> list[str]:
        found: dict[str, None] = {}
        while len(found) < count:
            stem = self._rng.choice(ONSETS) + self._rng.choice(VOWELS) + self._rng.choice(CODAS)
            found[(stem + self._rng.choice(endings)).capitalize()] = None
        return list(found)

    def _unique(self, *lists: Sequence[str], between: str) -> str:
        while True:
            name = between.join(self._zipf(words) for words in lists)
            if name not in self._taken:
                self._taken.add(name)
                return name

    def _zipf(self, words: Sequence[str]) -> str:
        weights = [1 / (rank + 5) for rank in range(len(words))]
        return self._rng.choices(words, weights)[0]
