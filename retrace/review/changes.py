"""What differs between two revisions, which differences count, and why: by paired predictions, else by the spread over
seeds, else by the tolerance."""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import groupby
from typing import Any, Literal

from retrace.core.paths import PRETRAINED, task_and_part
from retrace.evaluation.records import BESIDE
from retrace.evaluation.settings import EvaluateParams
from retrace.report.blocks import NOTHING
from retrace.report.names import points, shown_ends, shown_signed, with_unit
from retrace.report.runs import flat
from retrace.review.revision import FIGURE, Place, Revision, data_of, flags_file, have_other_data, kind_of
from retrace.review.settings import ReviewParams
from retrace.statistics.comparisons import Difference
from retrace.statistics.scales import CURVES, MEASURES, Figure, Interval, Legend, loss_on

SHOWN = 0.2  # relative difference from which time or memory is shown
ROUNDING = 1e-4  # relative; committed figures have six digits, and sums may be taken in another order


@dataclass(frozen=True)
class Change:
    """A headline figure that differs."""

    place: Place
    what: Figure
    old: float
    new: float
    counts: bool  # beyond the noise
    is_far: bool  # more than the tolerance
    why: str
    interval: Interval | None = None  # 95%, of the new figure less the old one
    is_compared: bool = True  # False if the two are of different texts or tokens

    @property
    def direction(self) -> Literal["better", "worse", "other"]:
        """Whether it is better; a baseline's change is neither better nor worse, as a baseline is not a model."""
        if self.what.better == "neither" or self.place.is_baseline or not self.is_compared:
            return "other"
        if math.isclose(self.old, self.new):  # perplexities that differ per token, but not in the base's tokens
            return "other"
        return "better" if (self.new > self.old) == (self.what.better == "higher") else "worse"

    @property
    def is_regression(self) -> bool:
        """Whether a figure that models are judged by got worse, beyond the noise and by more than the tolerance."""
        return self.counts and self.is_far and self.direction == "worse" and self.place.figure not in BESIDE


@dataclass(frozen=True)
class Moved:
    """A setting, a flag count, or a run's time or memory, before and after; NOTHING or 0 if it is absent."""

    name: str
    old: Any
    new: Any


@dataclass(frozen=True)
class Review:
    """Everything that differs."""

    compared: int  # how many figures both have
    changes: Sequence[Change]
    notes: Sequence[str]
    flags: Sequence[Moved]  # how many seeds have each
    params: Sequence[Moved]
    runs: Sequence[Moved]
    has_other_figures: bool = False  # whether some figures are in only one of the two
    is_stale: bool = False  # whether dvc repro has not run since something changed

    @property
    def has_failed(self) -> bool:
        """Whether there is a regression."""
        return any(change.is_regression for change in self.changes)


def review(old: Revision, new: Revision) -> Review:
    """Compare two revisions, by the settings of the second.

    Raises InputError if these are wrong.
    """
    both = [place for place in new.figures if place in old.figures]
    differing = [place for place in both if old.figures[place] != new.figures[place]]
    changes = list(_Judge(old, new).changes(differing)) if differing else []
    # No flag is known to be new where those of the base cannot be read.
    unread = old.unread
    listed = {(of, who) for of, who in new.flaggable if flags_file(who) not in unread}
    flags = sorted(_moved(old.flags_of(listed), new.flags_of(listed), 0), key=lambda moved: moved.name)
    return Review(
        compared=len(both), changes=changes, flags=flags, runs=[*_runs(old, new)], is_stale=bool(new.stale_stages),
        params=_moved(flat(old.params), flat(new.params), NOTHING) if old.params else [],
        notes=[*_notes(old, new), *_pretrained(changes, old, new)],
        has_other_figures=old.figures.keys() != new.figures.keys(),
    )  # fmt: skip


def signed(what: Figure, difference: float) -> str:
    """A difference as printed: for shares in percentage points."""
    return shown_signed(what, difference) + points(what)


class _Judge:
    """Tells which differences between two revisions' figures count, by the settings of the second."""

    def __init__(self, old: Revision, new: Revision) -> None:
        from retrace.review import pairs  # here, as it takes a second to import

        self._sides, self._pairs = (old, new), pairs
        self._tolerance = ReviewParams.read(new.params).review.tolerance
        self._params = EvaluateParams.read(new.params)

    def changes(self, differing: Sequence[Place]) -> Iterator[Change]:
        """A change for each figure that differs."""
        for (of, who, is_baseline), group in groupby(differing, lambda place: (place.of, place.who, place.is_baseline)):
            places = list(group)
            if places[0].figure == FIGURE:
                yield self._of_perplexity(places[0])
                continue
            figures, sides = [place.figure for place in places], self._sides
            paired = self._pairs.Paired(None)  # a baseline has no predictions
            if not is_baseline:
                paired = self._pairs.paired_differences(of, who, figures, sides, self._params)
            why = ""
            if paired.are_same_examples is False:
                why = "the examples differ"
            elif paired.are_same_examples is None and have_other_data(data_of(of, sides), sides):
                why = "the data differs"
            if why:
                yield from (self._not_compared(place, why) for place in places)
                continue
            for place in places:
                found = paired.differences.get(place.figure)
                how = "of the same seeds, paired" if found else "by the spread over seeds"
                yield self._change(place, found or self._by_spread(place), how)

    def _not_compared(self, place: Place, why: str) -> Change:
        change = self._change(place)
        return replace(change, counts=False, is_far=False, is_compared=False, why=f"not compared: {why}")

    def _of_perplexity(self, place: Place) -> Change:
        """The change of a perplexity, which is of one model on each side."""
        documents = (place.of, place.who, self._sides)
        if why := self._pairs.why_not_comparable(*documents):
            return self._not_compared(place, why)
        if place.is_baseline:
            return self._change(place)
        values, paired = self._pairs.paired_perplexity(*documents, self._params)
        change = self._change(place, paired, values=values)
        why = f"in the base's tokens, as the tokenizers differ; {change.why}"
        return replace(change, why=why) if values else change

    def _by_spread(self, place: Place) -> Difference | None:
        """The difference by the pooled variance over seeds (Student's t for two samples; one may be a single seed).

        None if no two seeds differ.
        """
        if place.is_baseline:
            return None
        found = [side.method(place) for side in self._sides]
        varying = [method for method in found if method and place.figure in method.std]
        spreads = [(len(method.seeds) - 1, method.std[place.figure]) for method in varying]
        pooled = sum(free * std**2 for free, std in spreads)
        if not pooled:
            return None
        seeds = sum(1 / side.seeds_of(method) for side, method in zip(self._sides, found, strict=True))
        of_seeds, freedom = pooled * seeds, sum(free for free, _ in spreads)
        old, new = (side.figures[place] for side in self._sides)
        return Difference(new - old, 0.0, math.sqrt(of_seeds / freedom), freedom)

    def _change(
        self, place: Place, found: Difference | None = None, how: str = "", values: Sequence[float] | None = None
    ) -> Change:
        """Whether a difference counts, and `how` it was found; `values` replace the figures if the tokens differ."""
        old, new = values or [side.figures[place] for side in self._sides]
        unknown = Figure("score", "neither", place.figure.replace("_", " "))  # of a metric that is no longer listed
        what = self._legend(place.of).get(place.figure, unknown)
        limit = self._tolerance.of(what, old)
        is_far = abs(new - old) > limit and not math.isclose(abs(new - old), limit)
        tolerance = f"{'more than' if is_far else 'within'} the tolerance of {self._tolerance.text(what)}"
        if found and not math.isclose(found.value, new - old, abs_tol=ROUNDING * max(abs(old), abs(new))):
            # The metric was edited, which no interval accounts for.
            of, gap = "losses" if place.figure == FIGURE else "predictions", signed(what, found.value)
            tolerance += f"; the {of} of both, scored by the same code, differ by {gap}"
            found = None
        if not found:
            return Change(place, what, old, new, is_far, is_far, tolerance)
        interval = found.interval
        is_clear = not interval["low"] <= 0 <= interval["high"]
        ends = shown_ends(what, interval["low"], interval["high"]) + points(what)
        if found.is_of_models:
            counts, why = is_clear and is_far, f"{tolerance}; one seed, 95% interval {ends} over {_drawn(place)}"
        else:
            counts, why = is_clear, f"95% interval {ends}, {how}" + (f"; {tolerance}" if is_far else "")
        return Change(place, what, old, new, counts, is_far, why, interval)

    def _legend(self, task: str) -> Legend:
        from retrace.evaluation.outcomes import Scoring  # here, as its metrics take seconds to import

        kind = kind_of(task, self._sides)
        return Scoring(getattr(self._params.metrics, kind)).legend | CURVES | loss_on(task_and_part(task)[1])


def _drawn(place: Place) -> str:
    """What a figure's interval is over, with one seed."""
    if place.figure != FIGURE:
        return "examples"
    return "passages" if place.who == "pseudo" else "documents"


def _notes(old: Revision, new: Revision) -> Iterator[str]:
    before, after = old.figures, new.figures
    if not after:
        yield "there are no metrics here that this version of Retrace reads; run dvc repro"
    elif not before:
        yield "the base has no metrics that this version of Retrace reads"
    elif not before.keys() & after.keys():
        yield "the two have no figure in common"
    for whose, side in (("of the base", old), ("here", new)):
        if before and after and side.unread:  # else its figures would be listed as new or gone without a reason
            yield f"this version of Retrace cannot read {' and '.join(side.unread)} {whose}"
    for where, one, other in (("gone", before, after), ("new", after, before)):
        models = {place[:2] for place in other}  # if the other lacks a model altogether, its figures are not listed
        only = {place[:3] if place[:2] in models else place[:2] for place in one if place not in other}
        if only and before and after:
            yield f"{where}: {', '.join(' '.join(place) for place in sorted(only))}"
    if stale := new.stale_stages:
        more = " and more" if len(stale) > 3 else ""
        yield f"dvc repro has not run since something changed: {', '.join(stale[:3])}{more}"
    yield from dict.fromkeys(filter(None, (old.unasked, new.unasked)))


def _pretrained(changes: Sequence[Change], old: Revision, new: Revision) -> Iterator[str]:
    """What the intervals leave out if fine-tuning started from different pretrained models, as notes."""
    one, other = (side.inputs.get(PRETRAINED.as_posix()) for side in (old, new))
    if one is not None and one == other:  # a perplexity may differ by its settings, such as the masking rate
        return
    models = [change for change in changes if not change.place.is_baseline]
    kinds = [{place.who for place in side.figures if place.figure == FIGURE and not place.is_baseline}
             for side in (old, new)]  # fmt: skip
    # A masked and a causal model have no perplexity in common. Pseudo-perplexities may be of different passages.
    differ = all(kinds) and kinds[0].isdisjoint(kinds[1])
    differ |= any(change.place.figure == FIGURE and change.place.who != "pseudo" for change in models)
    if differ and any(change.place.figure != FIGURE and change.is_compared for change in models):
        yield "the pretrained models differ, with one on each side, so no interval covers other seeds of pretraining"


def _moved(old: Mapping[str, Any], new: Mapping[str, Any], absent: Any) -> list[Moved]:
    found = [Moved(key, old.get(key, absent), new.get(key, absent)) for key in dict.fromkeys([*new, *old])]
    return [moved for moved in found if moved.old != moved.new]


def _runs(old: Revision, new: Revision) -> Iterator[Moved]:
    both = [name for name in new.runs if name in old.runs]
    for name in both:
        for measure, figure in MEASURES.items():
            was, now = getattr(old.runs[name], measure), getattr(new.runs[name], measure)
            if was and now and abs(now - was) > SHOWN * was:
                yield Moved(f"{name}: {with_unit(measure, figure)}", was, now)
