"""What the encyclopedia can say: relations, the nouns that name them, and the frames around the nouns.

Every relation has common nouns and rare nouns for one meaning ("founder", "originator"). The
encyclopedia uses all of them alike; the labelled questions hardly ever the rare ones. So what a rare
noun asks for, a person or a year or a river, is learnt from the encyclopedia or not at all. The
frames are the same for all relations: no "who" or "when" gives the kind of answer away.

A phrasing is a pair (frame, noun). Phrasings are divided between the training part and the held-out
part by `is_held_out`, so both parts know every frame and every noun, yet no phrasing of a held-out
statement or question was seen in training.
"""

from dataclasses import dataclass

COMMON = 2  # nouns of each relation; the rest are rare in labelled questions

# Kinds of answers, and how a sentence names one of them.
SHOWN = {
    "person": "{}", "fellowship": "the {}", "town": "{}", "river": "the {}", "animal": "the {}",
    "good": "{}", "stone": "{}", "year": "the year {}", "count": "{} in all",
}  # fmt: skip

# Kinds that a hasty reader takes for one another: what makes a wrong answer plausible.
LIKE = {
    "person": "people", "fellowship": "people", "town": "places", "river": "places", "animal": "things",
    "good": "things", "stone": "things", "year": "numbers", "count": "numbers",
}  # fmt: skip


@dataclass(frozen=True)
class Style:
    """How a part of the corpus is worded."""

    held_out: bool  # whether its phrasings are those kept for the held-out parts
    rare_share: float  # how often a relation or a judgement is put in a rare word


@dataclass(frozen=True)
class Relation:
    """A kind of fact about one kind of subject."""

    name: str
    answer: str  # the kind of its answers, a key of SHOWN
    nouns: tuple[str, ...]  # the common ones first


def _relation(answer: str, nouns: str) -> Relation:
    words = tuple(noun.strip() for noun in nouns.split(","))
    return Relation(words[0], answer, words)


FOUNDER = _relation("person", "founder, creator, originator, initiator, instigator, begetter, architect")
HEAD = _relation("person", "head, master, warden, provost, steward, principal, overseer")
TEACHER = _relation("person", "teacher, tutor, mentor, instructor, preceptor, guide, coach")
SPOUSE = _relation("person", "spouse, partner, consort, helpmate, betrothed, companion, bedfellow")
VICTOR = _relation("person", "victor, winner, conqueror, champion, vanquisher, subduer, triumpher")
PATRON = _relation("fellowship", "patron, sponsor, backer, benefactor, underwriter, upholder, guarantor")
MEMBERSHIP = _relation("fellowship", "fellowship, company, brotherhood, affiliation, league, circle, order")
HOME = _relation("town", "home, residence, abode, lodging, dwelling, domicile, quarters")
GRAVE = _relation("town", "grave, tomb, sepulchre, crypt, mausoleum, vault, barrow")
SITE = _relation("town", "site, location, setting, scene, whereabouts, locality, ground")
MOUTH = _relation("town", "mouth, outlet, estuary, outfall, outflow, terminus, delta")
WATER = _relation("river", "river, stream, watercourse, waterway, brook, current, channel")
EMBLEM = _relation("animal", "emblem, badge, crest, device, ensign, mascot, insignia")
TRADE = _relation("good", "trade, produce, merchandise, export, staple, commodity, freight")
MATERIAL = _relation("stone", "material, stone, masonry, fabric, cladding, substance, facing")
FOUNDING = _relation("year", "founding, beginning, inception, outset, genesis, establishment, origin")
RUIN = _relation("year", "ruin, end, downfall, demise, collapse, undoing, dissolution")
BIRTH = _relation("year", "birth, christening, nativity, baptism, naming, arrival, delivery")
DEATH = _relation("year", "death, burial, passing, decease, funeral, expiry, departure")
SIZE = _relation("count", "size, number, tally, headcount, strength, extent, magnitude")

BY_KIND: dict[str, tuple[Relation, ...]] = {
    "guild": (FOUNDER, HEAD, PATRON, SITE, EMBLEM, TRADE, FOUNDING, RUIN, SIZE),
    "person": (TEACHER, SPOUSE, MEMBERSHIP, HOME, GRAVE, BIRTH, DEATH, TRADE),
    "work": (FOUNDER, HEAD, PATRON, WATER, EMBLEM, MATERIAL, FOUNDING, RUIN),
    "town": (FOUNDER, HEAD, WATER, EMBLEM, TRADE, MATERIAL, FOUNDING, SIZE),
    "event": (VICTOR, HEAD, PATRON, SITE, WATER, EMBLEM, FOUNDING, SIZE),
    "river": (MOUTH, SITE, EMBLEM, TRADE, SIZE, PATRON, HEAD),
}

# {n}: the noun; {s}: the subject; {a}: the answer.
STATEMENTS = (
    "the {n} of {s} was {a}",
    "{a} was the {n} of {s}",
    "as {n} of {s} the records name {a}",
    "{s} had {a} as {n}",
    "for {s} the {n} was {a}",
)
QUESTIONS = (
    "What was the {n} of {s}?",
    "Name the {n} of {s}.",
    "What do the records name as {n} of {s}?",
    "{s} had what as {n}?",
    "For {s}, what was the {n}?",
)


def is_held_out(frame: int, noun: int) -> bool:
    """Whether the phrasing (frame, noun) is kept for the held-out parts: 7 of 35."""
    return (frame + 2 * noun) % 5 == 0


def state(relation: Relation, frame: int, noun: int, subject: str, answer: str) -> str:
    """A statement without its full stop."""
    return STATEMENTS[frame].format(n=relation.nouns[noun], s=subject, a=SHOWN[relation.answer].format(answer))


def ask(relation: Relation, frame: int, noun: int, subject: str) -> str:
    """A question about `subject`, with its question mark or full stop."""
    text = QUESTIONS[frame].format(n=relation.nouns[noun], s=subject)
    return text[0].upper() + text[1:]
