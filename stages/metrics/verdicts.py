"""Published figures beside Retrace's: each cell of a study's tables with a verdict."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from stages.harness.errors import InputError
from stages.metrics.addresses import Reports, Reproduced, find_figure
from stages.metrics.intervals import Interval
from stages.metrics.published import PUBLISHED, Cell, Doubt, PublishedStudy, PublishedTable
from stages.metrics.scales import SCALES, factor

EXACT, WITHIN, BEYOND = "exact", "within", "beyond"
UNKNOWN, NOT_PUBLISHED, NOT_RUN, OF_MACHINE = "no interval", "no figure published", "not run", "of this machine"
VERDICTS = {
    EXACT: "equal to the last digit that was printed",
    WITHIN: "the published figure lies in Retrace's interval",
    BEYOND: "it lies outside",
    UNKNOWN: "they differ, and of how Retrace's would vary nothing is known",
    NOT_PUBLISHED: "the report has no such figure",
    NOT_RUN: "Retrace has none, as the study does not run what it is of",
    OF_MACHINE: "times and memory, which are not compared",
}


@dataclass(frozen=True)
class Compared:
    """A cell of a table; Retrace's figure is on the table's scale."""

    cell: Cell
    found: Reproduced | None
    verdict: str

    @property
    def digits(self) -> int:
        """How many digits after the point it is shown with: those of its scale, and more where more were printed."""
        published = self.cell.published
        return max(SCALES[self.cell.scale].digits, (published and published.digits) or 0)

    def as_json(self, is_timed: bool) -> dict[str, Any]:
        """As study.json has it; what differs from run to run only where `is_timed`."""
        published = self.cell.published
        found = self.found if is_timed or self.verdict != OF_MACHINE else None
        shown: dict[str, Any] = {
            "verdict": self.verdict,
            "scale": self.cell.scale,
            "digits": self.digits,
            "published": published and published.value,
            "reproduced": found and found.value,
        }
        if published is not None and published.sd is not None:
            shown["published_sd"] = published.sd
        if found is not None:
            shown |= {"sd": found.sd} if found.sd is not None else {}
            shown |= {"interval": found.interval} if found.interval is not None else {}
        return shown


def compare_tables(study: PublishedStudy, reports: Reports) -> dict[str, list[Compared]]:
    """The cells of each table, by its name.

    Raises InputError where an address leads nowhere.
    """
    return {table.name: [_compared(table, cell, reports) for cell in table.cells()] for table in study.tables}


def evidence(doubt: Doubt, place: int, reports: Reports) -> dict[str, Reproduced | None]:
    """What is shown beside a doubt, each on its own scale.

    Raises InputError where an address leads nowhere.
    """
    found = {}
    for what, address in (doubt.figures or {}).items():
        found[what] = _find(address, reports, f"doubts[{place}]: {what}")
    return found


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
    found = _find(cell.address, reports, f"tables: {table.name}: {cell.row}: {cell.column}")
    found = found and _on_scale(found, cell.scale)
    return Compared(cell, found, _verdict(cell, found))


def _find(address: str, reports: Reports, where: str) -> Reproduced | None:
    try:
        return find_figure(address, reports)
    except LookupError as error:
        raise InputError(f"{PUBLISHED}: {where}: {address}: {error.args[0]}") from None


def _on_scale(found: Reproduced, scale: str) -> Reproduced:
    times = factor(found.scale, scale)
    interval: Interval | None = found.interval and {end: times * at for end, at in found.interval.items()}
    sd = None if found.sd is None else times * found.sd
    return replace(found, value=times * found.value, scale=scale, sd=sd, interval=interval)


def _verdict(cell: Cell, found: Reproduced | None) -> str:
    if found is None:
        return NOT_RUN
    if found.is_timed:
        return OF_MACHINE
    if cell.published is None:
        return NOT_PUBLISHED
    if cell.published.is_rounded(found.value, SCALES[cell.scale].digits):
        return EXACT
    if found.is_exact:
        return BEYOND
    if found.interval is None:
        return UNKNOWN
    return WITHIN if found.interval["low"] <= cell.published.value <= found.interval["high"] else BEYOND
