"""An invented country: who lived where, who founded what, and when.

Every fact is decided here, once, before anything is written, so that articles agree on it. If there are enough people,
dates are consistent: whoever founds, builds, wins or rules something in a year was alive and grown up then. With only
60 people, as in a held-out part, a few were not.
"""

import random
from bisect import bisect_left, bisect_right
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from retrace.sample.language import BY_KIND, WORDS, Relation

GIVEN_NAMES, FAMILY_NAMES, TOWN_NAMES = 450, 1100, 250
RIVER_NAMES = TOWN_NAMES * len(WORDS["river_endings"])  # of all kinds of entities, rivers have the fewest names
LISTED = ("animal", "good", "stone", "meal", "flower", "colour", "count", "feast")  # kinds of answer from word lists


class NameMaker:
    """Draws names, none of them twice.

    All parts of the corpus share closed lists of given names, family names and parts of place names, with Zipfian
    frequencies, but no whole name. So a held-out name is new, yet spelt in pieces that a subword vocabulary has seen.
    """

    def __init__(self, rng: random.Random) -> None:
        self._rng = rng
        self._taken: set[str] = set()
        self._given = self._list(GIVEN_NAMES, WORDS["given_endings"])
        self._family = self._list(FAMILY_NAMES, WORDS["family_endings"])
        self._towns = self._list(TOWN_NAMES, [""])

    def person(self) -> str:
        """A given name and a family name, such as ``Drelin Houskard``."""
        return self._unique(self._given, self._family, between=" ")

    def town(self) -> str:
        """Two words, such as ``Brand Mere``."""
        return self._unique(self._towns, WORDS["places"], between=" ")

    def river(self) -> str:
        """One word, such as ``Thorndel``."""
        return self._unique(self._towns, WORDS["river_endings"], between="")

    def _list(self, count: int, endings: Sequence[str]) -> list[str]:
        found: dict[str, None] = {}
        while len(found) < count:
            stem = "".join(self._rng.choice(WORDS[sounds]) for sounds in ("onsets", "vowels", "codas"))
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


FIRST_YEAR, LAST_YEAR = 1300, 1700
GROWN_UP, OLDEST = 18, 80  # years


@dataclass(eq=False)
class Entity:
    """The subject of an article, and the facts about it."""

    kind: str
    name: str  # in a sentence: "Drelin Houskard", "the Weavers of Brandmere"
    title: str  # in a heading: "Weavers of Brandmere"
    facts: dict[str, str] = field(default_factory=dict)  # relation name → answer
    deeds: list[tuple["Entity", Relation]] = field(default_factory=list)  # facts whose answer this person is


def sizes_of(shares: Mapping[str, int], times: float) -> dict[str, int]:
    """Entities of each kind: `times` as many as in `shares`, and at least four, so that answers can be chosen."""
    return {kind: max(4, round(count * times)) for kind, count in shares.items()}


def build_world(rng: random.Random, names: NameMaker, size: Mapping[str, int]) -> list[Entity]:
    """Draw `size` entities of each kind, people first; all randomness but that of names comes from `rng`.

    One part of the corpus (training, validation or test) is about them; parts share no name.
    """
    towns = [names.town() for _ in range(size["towns"])]
    rivers = [names.river() for _ in range(size["rivers"])]
    others = [Entity("town", town, town) for town in towns]
    others += [Entity("river", f"the {river}", river) for river in rivers]
    for kind, heads in (("guild", "crafts"), ("work", "works"), ("event", "events")):
        titles = [f"{head} of {town}" for head in WORDS[heads] for town in towns]
        chosen = rng.sample(titles, size[f"{kind}s"])
        others += [Entity(kind, f"the {title}", title) for title in chosen]
    pools = {kind: WORDS[f"{kind}s"] for kind in LISTED}
    pools |= {"town": towns, "river": rivers, "fellowship": WORDS["crafts"]}
    people = _people(rng, names, size["people"])
    for entity in others + people:
        _decide(rng, entity, people, pools)
    return people + others


def _people(rng: random.Random, names: NameMaker, count: int) -> list[Entity]:
    """People with dates of birth and death, in order of birth."""
    births = sorted(max(FIRST_YEAR, LAST_YEAR - 100 - int(rng.expovariate(1 / 50))) for _ in range(count))
    people = []
    for birth in births:
        name = names.person()
        dates = {"birth": str(birth), "death": str(birth + rng.randint(35, OLDEST))}
        people.append(Entity("person", name, name, dates))
    return people


def _decide(rng: random.Random, entity: Entity, people: list[Entity], pools: Mapping[str, Sequence[str]]) -> None:
    """Draw the answer of every relation of the entity's kind: no answer twice, and none that is part of its name.

    `pools`: kind of answer → the possible ones.
    """
    year = max(FIRST_YEAR + 60, LAST_YEAR - 60 - int(rng.expovariate(1 / 50)))
    if "birth" in entity.facts:
        year = int(entity.facts["birth"]) + 25
    used = {entity.name, *entity.facts.values()}
    for relation in [relation for relation in BY_KIND[entity.kind] if relation.name not in entity.facts]:
        if relation.answer == "person":
            person = _contemporary(rng, people, year, used)
            person.deeds.append((entity, relation))
            answer = person.name
        elif relation.answer == "year":
            answer = str(year)
            year += rng.randint(3, 25)
        else:
            named = entity.name.lower()
            answer = rng.choice([x for x in pools[relation.answer] if x not in used and x.lower() not in named])
        used.add(answer)
        entity.facts[relation.name] = answer


def _contemporary(rng: random.Random, people: list[Entity], year: int, used: set[str]) -> Entity:
    """A person alive and grown up in `year`, or else the one nearest in age. People are sorted by birth."""
    first = bisect_left(people, year - OLDEST, key=_birth)
    last = bisect_right(people, year - GROWN_UP, key=_birth)
    alive = [p for p in people[first:last] if p.name not in used and year <= int(p.facts["death"])]
    if alive:
        return rng.choice(alive)
    rest = [p for p in people if p.name not in used]
    return min(rest, key=lambda p: abs(_birth(p) + 40 - year))


def _birth(person: Entity) -> int:
    return int(person.facts["birth"])
