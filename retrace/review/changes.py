"""What differs between two revisions, what of it counts, and why."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from retrace.core.records import RunRecord
from retrace.report.blocks import NOTHING
from retrace.report.names import with_unit
from retrace.review.judge import Change, Judge
from retrace.review.revision import Revision, flat
from retrace.statistics.scales import MEASURES

SHOWN = 0.2  # share by which time or memory has to differ to be shown


@dataclass(frozen=True)
class Moved:
    """A setting, a flag or a run's time or memory, before and after; a dash, or 0, where it is not there."""

    name: str
    old: Any
    new: Any


@dataclass(frozen=True)
class Review:
    """All that differs."""

    compared: int  # figures that both have
    changes: Sequence[Change]
    notes: Sequence[str]
    flags: Sequence[Moved]  # how many seeds have each
    params: Sequence[Moved]
    runs: Sequence[Moved]

    @property
    def has_failed(self) -> bool:
        """Whether a figure fell by more than the tolerance."""
        return any(change.is_fall for change in self.changes)


def review(old: Revision, new: Revision) -> Review:
    """The second beside the first, by the settings of the second.

    Raises InputError where its settings are wrong.
    """
    before, after = old.headlines, new.headlines
    both = [place for place in after.figures if place in before.figures]
    differing = [place for place in both if before.figures[place] != after.figures[place]]
    counts = sorted({*before.flags, *after.flags})
    flags = [Moved(" ".join(of), before.flags.get(of, 0), after.flags.get(of, 0)) for of in counts]
    changes = list(Judge(old, new).changes(differing)) if differing else []
    settings = _moved(flat(old.params), flat(new.params)) if old.params else []
    return Review(len(both), changes, [*_notes(old, new)], [flag for flag in flags if flag.old != flag.new], settings,
                  [*_run_changes(old.runs, new.runs)])  # fmt: skip


def _notes(old: Revision, new: Revision) -> Iterator[str]:
    before, after = old.headlines, new.headlines
    if not after.figures:
        yield "there are no metrics here: dvc repro makes them"
    elif not before.figures:
        yield "the base has no metrics"
    elif not before.figures.keys() & after.figures.keys():
        yield "the two have no figure in common"
    if before.figures and (before.is_former or after.is_former):
        where = "the base's" if before.is_former else "these"
        yield f"{where} metrics are of an earlier version of Retrace: what both have is compared"
    sides = [{place[:2] for place in of.figures} for of in (before, after)]
    for where, only in (("gone", sides[0] - sides[1]), ("new", sides[1] - sides[0])):
        if only and all(sides):
            yield f"{where}: {', '.join(' '.join(place) for place in sorted(only))}"
    if stale := new.stale_stages:
        yield f"dvc repro has not run since something changed: {', '.join(stale[:3])}{' and more' * (len(stale) > 3)}"


def _moved(old: Mapping[str, Any], new: Mapping[str, Any]) -> list[Moved]:
    keys = dict.fromkeys([*new, *old])
    found = [Moved(key, old.get(key, NOTHING), new.get(key, NOTHING)) for key in keys]
    return [moved for moved in found if moved.old != moved.new]


def _run_changes(old: Mapping[str, RunRecord], new: Mapping[str, RunRecord]) -> Iterator[Moved]:
    for name in (name for name in new if name in old):
        for measure, figure in MEASURES.items():
            before, after = getattr(old[name], measure), getattr(new[name], measure)
            if before and after and abs(after - before) > SHOWN * before:
                yield Moved(f"{name}: {with_unit(measure, figure)}", before, after)
