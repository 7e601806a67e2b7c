"""A review as Markdown: the verdict, what counts and why, and the rest folded."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from retrace.core.paths import task_and_part
from retrace.core.schema import shown as as_yaml
from retrace.evaluation.records import BESIDE, DATA
from retrace.report.blocks import NOTHING, Block, Table
from retrace.report.names import KINDS, TASKS, baseline_name, method_name, shown, title_of
from retrace.report.page import fill_markdown
from retrace.review.changes import SHOWN, Change, Moved, Review, signed
from retrace.review.revision import FIGURE

MOST = 3  # changes named in the verdict


def as_markdown(review: Review, base: str) -> str:
    """The whole review; `base` describes the revision that it compares with."""
    moved = [change for change in review.changes if change.counts]
    rest = [change for change in review.changes if not change.counts]
    blocks: list[Block] = [f"Note: {note}." for note in review.notes]
    blocks += [*_table(moved), *_flags(review.flags), *_moved("setting", review.params, _value)]
    if review.runs:
        differ = f"Time and memory that differ by more than {SHOWN:.0%}"
        blocks += [f"{differ}; these depend on the machine and its load.", *_moved("run", review.runs, _amount)]
    text = fill_markdown(
        "review.md.j2", Path(__file__).parent, verdict=verdict(review), base=base, parts=blocks, rest=_table(rest),
        count=len(rest),
    )  # fmt: skip
    return text.replace("@", "@\u200b").strip()  # a name after @ would notify someone on a forge


def verdict(review: Review) -> str:
    """The result in one sentence."""
    if not review.compared:
        return f"not compared: {review.notes[0]}"
    text = f"{_verdict(review)}{_left_out(review.changes)}"
    leaks = [_readable(flag) for flag in review.flags if not flag.old and f" {DATA} " in flag.name]
    if leaks:  # better figures on data that models were trained on mean little
        text = f"{text}; but the data has new flags: {', '.join(leaks)}"
    return f"out of date, as dvc repro has not run since a change; before it: {text}" if review.is_stale else text


def _verdict(review: Review) -> str:
    judged = [change for change in review.changes if change.counts and change.place.figure not in BESIDE]
    better, worse = (_names([change for change in judged if change.direction == way]) for way in ("better", "worse"))
    if better and worse:
        return f"mixed: {worse}; but {better}"
    if worse:
        return f"worse: {worse}"
    if better:
        return f"better: {better}, beyond the noise; no figure that models are judged by got worse beyond it"
    if not review.changes:
        shared = " that both have" if review.has_other_figures else ""
        return f"no change: all {review.compared} figures{shared} are the same"
    differ = f"{len(review.changes)} of {review.compared} figures differ"
    if not any(change.is_compared for change in review.changes):
        return f"not compared: {differ}, and none of these can be compared"
    return f"within noise: {differ}, but none that models are judged by differs by more than noise"


def _left_out(changes: Sequence[Change]) -> str:
    """How many differing figures of models the verdict does not mention; empty if it mentions none at all."""
    left = sum(not change.is_compared and not change.place.is_baseline for change in changes)
    if not left or not any(change.is_compared for change in changes):
        return ""
    return f"; {left} {'figure that differs' if left == 1 else 'figures that differ'} cannot be compared"


def _names(changes: Sequence[Change]) -> str:
    """The largest changes relative to the old figures, tasks before perplexities; of each model only the first one."""
    firsts: dict[tuple[str, ...], Change] = {}
    for change in changes:
        firsts.setdefault(change.place[:2], change)
    largest = sorted(firsts.values(), key=lambda change: (
        change.place.figure == FIGURE, -abs(change.new - change.old) / (abs(change.old) or 1)
    ))  # fmt: skip
    named = [f"{_name(change)} {_difference(change)}" for change in largest[:MOST]]
    return ", ".join([*named, *([f"{len(firsts) - MOST} more"] if len(firsts) > MOST else [])])


def _name(change: Change) -> str:
    place = change.place
    if place.figure == FIGURE:
        return f"{place.who} perplexity ({place.of})"
    name, part = task_and_part(place.of)
    where = ", test set" if part == "test" else ""
    return f"{TASKS[name][1] if name in TASKS else name} {change.what.name} ({place.who}{where})"


def _table(changes: Sequence[Change]) -> list[Table]:
    """A row for each change; no table without any."""
    rows = [
        (_of(change), change.what.name, NOTHING if change.direction == "other" else change.direction,
         shown(change.what, change.old), shown(change.what, change.new), _difference(change), change.why)
        for change in changes
    ]  # fmt: skip
    header = ("result of", "figure", "direction", "before", "now", "difference", "why")
    return [Table(header, rows)] if rows else []


def _of(change: Change) -> str:
    place = change.place
    if place.figure == FIGURE:
        return f"{place.of} text, {KINDS.get(place.who, place.who)}"
    return f"{title_of(place.of)}, {(baseline_name if place.is_baseline else method_name)(place.who)}"


def _difference(change: Change) -> str:
    return signed(change.what, change.new - change.old)


def _flags(flags: Sequence[Moved]) -> list[str]:
    """A line each for new flags, resolved ones, and those on more or fewer seeds."""
    named = [(_readable(flag), flag.old, flag.new) for flag in flags]
    parts = {
        "New health flags": [name for name, old, _ in named if not old],
        "Resolved health flags": [name for name, _, new in named if not new],
        "Health flags on more or fewer seeds": [
            f"{name} (was {old}, is {new})" for name, old, new in named if old and new
        ],
    }
    return [f"{what}: {'; '.join(names)}." for what, names in parts.items() if names]


def _readable(flag: Moved) -> str:
    """The task, the model and the flag; only the flag's own words are separated, as a task may be called ag_news."""
    place, _, name = flag.name.rpartition(" ")
    return f"{place} {name.replace('_', ' ')}"


def _moved(what: str, found: Sequence[Moved], as_text: Callable[[Any], str]) -> list[Table]:
    rows = [(moved.name, as_text(moved.old), as_text(moved.new)) for moved in found]
    return [Table((what, "before", "now"), rows)] if rows else []


def _value(value: Any) -> str:
    return NOTHING if value == NOTHING else as_yaml(value)


def _amount(value: float) -> str:
    return f"{value:,.4g}" if value < 1000 else f"{value:,.0f}"
