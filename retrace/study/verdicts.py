"""Published figures beside Retrace's: each cell of a study's tables with a verdict.

What looks wrong about published figures, by the rules that Retrace's own are held to.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from retrace.core.errors import InputError
from retrace.evaluation.flags import figure_flags
from retrace.statistics.intervals import Interval
from retrace.statistics.scales import SCALES, SHARES, factor
from retrace.study.addresses import Reports, Reproduced, find_figure
from retrace.study.published import BETWEEN, PUBLISHED, Cell, Doubt, PublishedStudy, PublishedTable

EXACT, WITHIN, IN_RANGE, BEYOND, ONE_SEED = "exact", "within", "in the range", "beyond", "outside, one seed"
UNKNOWN, NOT_PUBLISHED, NOT_RUN, OF_MACHINE = "no interval", "no figure published", "not run", "of this machine"
VERDICTS = {
    EXACT: "equal to the last digit that was printed",
    WITHIN: "the published figure lies in Retrace's interval",
    IN_RANGE: "Retrace's figure lies in the range that was printed",
    BEYOND: "it lies outside",
    ONE_SEED: "it lies outside the interval of this one seed's figure; how seeds vary is unknown",
    UNKNOWN: "they differ, and of how Retrace's would vary nothing is known",
    NOT_PUBLISHED: "the report has no such figure",
    NOT_RUN: "Retrace has none, as the study does not run what it is of",
    OF_MACHINE: "times and memory, which are not compared",
}
FROM_GOOD_TO_BAD = (EXACT, IN_RANGE, WITHIN, UNKNOWN, ONE_SEED, BEYOND)
SEEDED = ("score", "perplexity")  # kinds of addresses whose figures have an interval, and vary from seed to seed


@dataclass(frozen=True)
class Compared:
    """A cell of a table; Retrace's figure is on the table's scale."""

    cell: Cell
    found: Reproduced | None
    verdict: str
    end: Reproduced | None = None  # of a range, whose first end `found` is then

    def as_json(self, is_timed: bool) -> dict[str, Any]:
        """As study.json has it; what differs from run to run only where `is_timed`."""
        published = self.cell.published
        found = [each for each in (self.found, self.end) if each is not None and (is_timed or not each.is_timed)]
        texts = [self.cell.form.text(each.value, each.sd, each.interval) for each in found]
        shown: dict[str, Any] = {
            "verdict": self.verdict,
            "scale": self.cell.scale,
            "printed": published and published.text,
            "shown": BETWEEN.join(texts) or None,
            "published": published and published.value,
            "reproduced": found[0].value if found else None,
        }
        if published is not None and published.sd is not None:
            shown["published_sd"] = published.sd
        if published is not None and published.end is not None:
            shown["published_end"] = published.end
        if self.end is not None and found:
            shown["reproduced_end"] = self.end.value
        elif found:
            shown |= {"sd": found[0].sd} if found[0].sd is not None else {}
            shown |= {"interval": found[0].interval} if found[0].interval is not None else {}
        return shown


def compare_tables(study: PublishedStudy, reports: Reports) -> dict[str, list[Compared]]:
    """The cells of each table, by its name.

    Raises InputError where an address leads nowhere.
    """
    return {table.name: [_compared(table, cell, reports) for cell in table.cells()] for table in study.tables}


def evidence(doubt: Doubt, place: int, reports: Reports) -> dict[str, list[Reproduced | None]]:
    """What is shown beside a doubt, each on its own scale; of a range both ends.

    Raises InputError where an address leads nowhere.
    """
    return {
        what: [_find(end, reports, f"doubts[{place}]: {what}") for end in address.split(BETWEEN)]
        for what, address in (doubt.figures or {}).items()
    }


def rows_json(compared: Sequence[Compared], is_timed: bool = False) -> dict[str, dict[str, Any]]:
    """Row → column → cell, of one table."""
    rows: dict[str, dict[str, Any]] = {}
    for each in compared:
        rows.setdefault(each.cell.row, {})[each.cell.column] = each.as_json(is_timed)
    return rows


def best_cells(table: PublishedTable, compared: Sequence[Compared]) -> dict[str, set[tuple[str, str]]]:
    """Row and column of the best published and reproduced figures, of each column or row as the table says."""
    best: dict[str, set[tuple[str, str]]] = {"published": set(), "reproduced": set()}
    if table.best is None:
        return best
    lines: dict[str, list[Compared]] = {}
    for each in compared:
        lines.setdefault(getattr(each.cell, table.best), []).append(each)
    for line in lines.values():
        sign = _sign(line)
        if sign == 0:
            continue
        for which in best:
            values = {(each.cell.row, each.cell.column): sign * value
                      for each in line if (value := each.as_json(is_timed=True)[which]) is not None}  # fmt: skip
            if len(values) > 1:
                best[which] |= {place for place, value in values.items() if value == max(values.values())}
    return best


def _sign(line: Sequence[Compared]) -> int:
    """1 where the highest figure is the best, -1 where the lowest, 0 where neither; by the score, else the scale."""
    said = next((each.found.better for each in line if each.found and each.found.better), None)
    is_best_high = SCALES[line[0].cell.scale].is_best_high
    return {"higher": 1, "lower": -1, "neither": 0}[said or ("higher" if is_best_high else "lower")]


def study_json(study: PublishedStudy, profile: str, compared: Mapping[str, Sequence[Compared]]) -> dict[str, Any]:
    """reports/study.json."""
    tables = {table.name: {"title": table.title, "rows": rows_json(compared[table.name])} for table in study.tables}
    return {"title": study.title, "source": study.source, "profile": profile, "tables": tables}


def cells_of(report: Mapping[str, Any]) -> Iterator[tuple[str, str, str, Mapping[str, Any]]]:
    """Table, row, column and cell of everything in study.json."""
    for name, table in report["tables"].items():
        for row, columns in table["rows"].items():
            for column, cell in columns.items():
                yield name, row, column, cell


def _compared(table: PublishedTable, cell: Cell, reports: Reports) -> Compared:
    if cell.address is None:
        return Compared(cell, None, NOT_RUN)
    where = f"tables: {table.name}: {cell.row}: {cell.column}"
    ends = [_on_scale(_find(end, reports, where), cell.scale, f"{where}: {end}") for end in cell.address.split(BETWEEN)]
    verdict = _verdict(cell, [end for end in ends if end is not None])
    if verdict == NOT_RUN or len(ends) == 1:
        return Compared(cell, None if verdict == NOT_RUN else ends[0], verdict)
    return Compared(cell, ends[0], verdict, ends[1])


def _find(address: str, reports: Reports, where: str) -> Reproduced | None:
    try:
        return find_figure(address, reports)
    except LookupError as error:
        raise InputError(f"{PUBLISHED}: {where}: {address}: {error.args[0]}") from None


def _on_scale(found: Reproduced | None, scale: str, where: str) -> Reproduced | None:
    if found is None:
        return None
    if (found.scale in SHARES) != (scale in SHARES):
        raise InputError(f"{PUBLISHED}: {where}: scale: {scale!r} is not allowed; it is on the scale {found.scale}")
    times = factor(found.scale, scale)
    interval: Interval | None = found.interval and {end: times * at for end, at in found.interval.items()}
    sd = None if found.sd is None else times * found.sd
    return replace(found, value=times * found.value, scale=scale, sd=sd, interval=interval)


def _verdict(cell: Cell, found: Sequence[Reproduced]) -> str:
    """`found` has one figure, or those of both ends of a range; fewer where they were not run."""
    assert cell.address is not None
    if len(found) < len(cell.address.split(BETWEEN)):
        return NOT_RUN
    if found[0].is_timed:
        return OF_MACHINE
    if cell.published is None:
        return NOT_PUBLISHED
    first, last = cell.published.value, cell.published.end
    if last is None:
        return _of_figure(cell, first, found[0])
    if len(found) == 2:
        verdicts = [_of_figure(cell, printed, each) for printed, each in zip((first, last), found, strict=True)]
        return max(verdicts, key=FROM_GOOD_TO_BAD.index)
    if min(first, last) - cell.published.half <= found[0].value <= max(first, last) + cell.published.half:
        return IN_RANGE
    nearest = min((first, last), key=lambda end: abs(end - found[0].value))
    return _of_figure(cell, nearest, found[0])


def _of_figure(cell: Cell, printed: float, found: Reproduced) -> str:
    if cell.equals(printed, found.value):
        return EXACT
    if found.is_exact:
        return BEYOND
    if found.interval is None:
        return UNKNOWN
    if found.interval["low"] <= printed <= found.interval["high"]:
        return WITHIN
    return ONE_SEED if found.sd is None and (cell.address or "").startswith(SEEDED) else BEYOND


SCORED = ("score", "before", "epoch")
CLASSES: dict[str, str] = dict.fromkeys(("accuracy", "precision", "recall", "f1"), "fraction")
ANSWERS: dict[str, str] = dict.fromkeys(("exact", "f1"), "percentage")


def notices(compared: Mapping[str, Sequence[Compared]]) -> list[str]:
    """One line a flag: the table, of what the figures are, the flag and its evidence.

    Figures belong together where a table has them of one task and one method: at addresses that differ in the end.
    """
    found = []
    for table, cells in compared.items():
        for name, group in _groups(cells).items():
            figures, scales, halves = _figures(group)
            flags = figure_flags(figures, scales)
            if "f1_below_exact" in flags and figures["f1"] + halves["f1"] >= figures["exact"] - halves["exact"]:
                del flags["f1_below_exact"]  # they were printed with other digits and may be equal
            found += [f"{table}: {name}: {flag.replace('_', ' ')}: {evidence}" for flag, evidence in flags.items()]
    return found


def _groups(cells: Sequence[Compared]) -> dict[str, dict[str, Compared]]:
    """The scores that were published, by where they belong and by name."""
    groups: dict[str, dict[str, Compared]] = {}
    for each in cells:
        kind, *parts = (each.cell.address or "").split(".")
        if kind in SCORED and each.cell.published is not None and each.cell.published.end is None:
            what = ("before training", *parts[:-1]) if kind == "before" else parts[:-1]
            groups.setdefault(" ".join(what), {})[parts[-1]] = each
    return groups


def _figures(group: Mapping[str, Compared]) -> tuple[dict[str, float], dict[str, str], dict[str, float]]:
    """Published figures, their scales and halves of their last digits: as the rules that set them side by side ask."""
    figures, scales, halves = {}, {}, {}
    ruled = ANSWERS if "exact" in group else CLASSES
    for name, each in group.items():
        assert each.cell.published is not None
        given = "percentage" if each.cell.scale == "percent" else each.cell.scale
        scales[name] = ruled.get(name, given) if given in SHARES else given
        times = factor(given, scales[name])
        figures[name], halves[name] = each.cell.published.value * times, each.cell.published.half * times
    return figures, scales, halves
