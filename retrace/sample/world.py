"""Names of an invented country: pronounceable, unique, and made from one seed.

Given names, family names and the parts of place names come from closed lists that every part of the
corpus shares and uses as often as Zipf's law has it, while no whole name occurs in two parts. A
held-out name is thus new, and yet spelt with pieces that a subword vocabulary has seen.

The invented country itself: who lived where, who founded what, and when.

Every fact is decided here once, before a word is written, so articles that mention the same fact
agree. Dates are possible: whoever founds, builds, wins or rules something in a year was grown up
and alive in it.
"""

import random
from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from dataclasses import astuple, dataclass, field

from retrace.sample.relations import BY_KIND, Relation

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


ANIMALS = (
    "heron otter badger falcon stag hare wolf raven salmon boar lynx owl swan fox crane ram viper bear "
    "magpie beaver hound goose mole eagle toad pike ferret weasel thrush gull"
).split()
GOODS = (
    "wool salt honey cheese candles rope barrels lace pottery glass leather paper ink soap wax cider beer "
    "bread linen silk nails bells clocks saddles boots gloves hats baskets oil flour pepper tar tiles knives "
    "needles ribbons carpets mirrors harps drums"
).split()
CRAFTS = (
    "Weavers Dyers Smiths Tanners Coopers Bakers Brewers Carvers Glaziers Potters Chandlers Saddlers "
    "Masons Drapers Hatters Cobblers Fletchers Millers Tilers Printers"
).split()
STONES = "granite marble slate sandstone limestone flint basalt chalk brick oak cedar bronze copper iron".split()
COUNTS = (
    "twelve thirteen fourteen fifteen sixteen seventeen eighteen nineteen twenty thirty forty fifty sixty seventy "
    "eighty ninety"
).split()
WORKS = "Bridge Tower Mill Inn Theatre Gate Hall Market Library Lighthouse Abbey Granary Tavern".split()
EVENTS = "Battle Siege Revolt March Raid Uprising".split()

FIRST_YEAR, LAST_YEAR = 1300, 1700
GROWN_UP, OLDEST = 18, 80  # years


@dataclass(eq=False)
class Entity:
    """One article's subject and the facts that hold for it."""

    kind: str
    name: str  # as a sentence uses it: "Drelin Houskard", "the Weavers of Brandmere"
    title: str  # as a heading uses it: "Weavers of Brandmere"
    facts: dict[str, str] = field(default_factory=dict)  # relation name → answer
    deeds: list[tuple["Entity", Relation]] = field(default_factory=list)  # a person's agent facts


@dataclass(frozen=True)
class Size:
    """How many entities of each kind a world has."""

    people: int
    towns: int
    guilds: int
    works: int
    events: int
    rivers: int

    def times(self, factor: float) -> "Size":
        """So many times as many, at least four of each kind: whom a fact is about, and others to choose from."""
        return Size(*(max(4, round(count * factor)) for count in astuple(self)))


@dataclass
class World:
    """All entities of one part (training, validation or test); parts share no name."""

    people: list[Entity]
    others: list[Entity]
    pools: dict[str, list[str]]  # kind of answer → what there is to choose from

    @property
    def entities(self) -> list[Entity]:
        """Everyone and everything that an article is about."""
        return self.people + self.others


def build_world(rng: random.Random, names: NameMaker, size: Size) -> World:
    """Draw a world; all randomness comes from `rng`."""
    towns = [names.town() for _ in range(size.towns)]
    rivers = [names.river() for _ in range(size.rivers)]
    others = [Entity("town", town, town) for town in towns]
    others += [Entity("river", f"the {river}", river) for river in rivers]
    for kind, heads, count in (
        ("guild", CRAFTS, size.guilds),
        ("work", WORKS, size.works),
        ("event", EVENTS, size.events),
    ):
        chosen = rng.sample([f"{head} of {town}" for head in heads for town in towns], count)
        others += [Entity(kind, f"the {title}", title) for title in chosen]
    pools = {
        "animal": ANIMALS, "good": GOODS, "town": towns, "river": rivers, "stone": STONES, "count": COUNTS,
        "fellowship": CRAFTS,
    }  # fmt: skip
    world = World(_people(rng, names, size.people), others, pools)
    for entity in world.others + world.people:
        _decide(rng, entity, world)
    return world


def _people(rng: random.Random, names: NameMaker, count: int) -> list[Entity]:
    """People with dates of birth and death; neighbours in age are married to each other."""
    births = sorted(max(FIRST_YEAR, LAST_YEAR - 100 - int(rng.expovariate(1 / 50))) for _ in range(count))
    people = []
    for birth in births:
        name = names.person()
        people.append(
            Entity("person", name, name, {"birth": str(birth), "death": str(birth + rng.randint(35, OLDEST))})
        )
    for first, second in zip(people[::2], people[1::2], strict=False):
        first.facts["spouse"], second.facts["spouse"] = second.name, first.name
    return people


def _decide(rng: random.Random, entity: Entity, world: World) -> None:
    """Give every relation of the entity's kind its answer, no answer twice and none that is in its name."""
    year = max(FIRST_YEAR + 60, LAST_YEAR - 60 - int(rng.expovariate(1 / 50)))
    if "birth" in entity.facts:
        year = int(entity.facts["birth"]) + 25
    used = {entity.name, *entity.facts.values()}
    for relation in BY_KIND[entity.kind]:
        if relation.name in entity.facts:
            continue
        if relation.answer == "person":
            person = _contemporary(rng, world.people, year, used)
            person.deeds.append((entity, relation))
            answer = person.name
        elif relation.answer == "year":
            answer = str(year)
            year += rng.randint(3, 25)
        else:
            answer = rng.choice([x for x in world.pools[relation.answer] if x not in used and x not in entity.name])
        used.add(answer)
        entity.facts[relation.name] = answer


def _contemporary(rng: random.Random, people: list[Entity], year: int, used: set[str]) -> Entity:
    """A person grown up and alive in `year`; the nearest in age if the world has none. People are sorted by birth."""
    first = bisect_left(people, year - OLDEST, key=_birth)
    last = bisect_right(people, year - GROWN_UP, key=_birth)
    alive = [p for p in people[first:last] if p.name not in used and year <= int(p.facts["death"])]
    if alive:
        return rng.choice(alive)
    rest = [p for p in people if p.name not in used]
    return min(rest, key=lambda p: abs(_birth(p) + 40 - year))


def _birth(person: Entity) -> int:
    return int(person.facts["birth"])
