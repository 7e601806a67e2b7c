"""Headline figures and flags of metrics.json and perplexity.json, also as earlier versions of Retrace wrote them."""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from pydantic import ValidationError

from retrace.evaluation.records import Metrics
from retrace.perplexity.measures import Perplexities

FIGURE = "perplexity"


class Place(NamedTuple):
    """Where a figure stands: "sst2", "full" and "accuracy", or "valid", "masked" and "perplexity"."""

    of: str  # a task, or a split of the running text
    who: str  # a method, a baseline, or a kind of perplexity
    figure: str
    is_baseline: bool = False


@dataclass(frozen=True)
class Headlines:
    """What one revision's files say."""

    figures: dict[Place, float] = field(default_factory=dict)
    flags: dict[tuple[str, str, str], int] = field(
        default_factory=dict
    )  # task or split, who, flag → seeds that have it
    is_former: bool = False  # whether an earlier version wrote them

    def and_of(self, other: "Headlines") -> "Headlines":
        """Both together."""
        former = self.is_former or other.is_former
        return Headlines(self.figures | other.figures, self.flags | other.flags, former)


def of_metrics(found: Mapping[str, Any]) -> Headlines:
    """Those of metrics.json."""
    try:
        metrics = Metrics.from_json(dict(found))
    except ValidationError:
        return _of_former_metrics(found)
    figures, flags = {}, {}
    for task, of in metrics.tasks.items():
        for is_baseline, sides in ((False, of.methods), (True, of.baselines)):
            for who, values in sides.items():
                figures |= {Place(task, who, name, is_baseline): value for name, value in values.items()}
        flags |= {(task, who, flag): count for who, counts in of.flags.items() for flag, count in counts.items()}
    return Headlines(figures, flags)


def of_perplexity(found: Mapping[str, Any]) -> Headlines:
    """Those of perplexity.json; before it had perplexities per token alone, it had them under each measure."""
    try:
        perplexities = Perplexities.from_json(dict(found))
    except ValidationError:
        figures = {
            Place(part, who, FIGURE, who == "unigram"): float(of["perplexity_per_token"])
            for part, measures in _mappings(found)
            for who, of in _mappings(measures)
            if _is_number(of.get("perplexity_per_token"))
        }
        flags = {(part, "language model", flag): 1 for part, of in _mappings(found) for flag in of.get("flags") or ()}
        return Headlines(figures, flags, is_former=True)
    figures = {
        Place(part, who, FIGURE, who == "unigram"): value
        for part, measures in perplexities.splits.items()
        for who, value in measures.items()
        if value is not None
    }
    flags = {
        (part, "language model", flag): count for part, of in perplexities.flags.items() for flag, count in of.items()
    }
    return Headlines(figures, flags)


def _of_former_metrics(found: Mapping[str, Any]) -> Headlines:
    """A method had every figure of every seed, their `mean` and `std`; flags stood by "full 1" at the top."""
    figures: dict[Place, float] = {}
    for task, sides in _mappings(found):
        for who, of in [*_mappings(sides), *_mappings(sides.get("baselines") or {})]:
            is_baseline = who in (sides.get("baselines") or ())
            values = of if is_baseline else of.get("mean", {})
            figures |= {Place(task, who, name, is_baseline): at for name, at in values.items() if _is_number(at)}
    flags = Counter(
        (task, who.rsplit(" ", 1)[0], flag)
        for task, sides in _mappings(found.get("flags") or {})
        for who, of in _mappings(sides)
        for flag in of
    )
    return Headlines(figures, dict(flags), is_former=True)


def _mappings(values: Mapping[str, Any]) -> list[tuple[str, Mapping[str, Any]]]:
    return [(str(name), of) for name, of in values.items() if isinstance(of, Mapping)]


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)
