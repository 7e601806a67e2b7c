"""The verdict on each published figure, and what looks wrong about published figures by the rules for Retrace's own."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace

from retrace.core.errors import InputError
from retrace.evaluation.flags import figure_flags
from retrace.statistics.intervals import Interval
from retrace.statistics.scales import SCALES, SHARES, factor
from retrace.study.addresses import Reports, Reproduced, find_figure
from retrace.study.published import (
    BETWEEN,
    HALF,
    PUBLISHED,
    Cell,
    ComparedCell,
    ComparedTable,
    Form,
    PublishedStudy,
    PublishedTable,
    Verdict,
)

SEEDED = ("score", "perplexity")  # kinds of addresses whose figures have an interval, and vary from seed to seed
SCORED = ("score", "before", "epoch")
CLASSES: dict[str, str] = dict.fromkeys(("accuracy", "precision", "recall", "f1"), "fraction")
ANSWERS: dict[str, str] = dict.fromkeys(("exact_match", "f1"), "percentage")


def compare_tables(study: PublishedStudy, reports: Reports) -> dict[str, ComparedTable]:
    """The study's tables with Retrace's figures, by name.

    Raises InputError where an address leads nowhere.
    """
    return {table.name: _compared(table, reports) for table in study.tables}


def evidence(study: PublishedStudy, reports: Reports) -> list[dict[str, str]]:
    """The figures shown beside each doubt, each on its own scale; both ends of a range; no text of what was not run.

    Raises InputError where an address leads nowhere.
    """
    return [
        {
            what: BETWEEN.join(
                Form(SCALES[end.scale].digits).text(end.value, interval=end.interval)
                for end in _find(address, reports, f"doubts[{place}]: {what}")
            )
            for what, address in doubt.figures.items()
        }
        for place, doubt in enumerate(study.doubts)
    ]


def _compared(table: PublishedTable, reports: Reports) -> ComparedTable:
    rows: dict[str, dict[str, ComparedCell]] = {}
    for cell in table.cells():
        where = f"tables: {table.name}: {cell.row}: {cell.column}"
        ends = [_on_scale(end, cell.scale, f"{where}: {cell.address}") for end in _find(cell.address, reports, where)]
        rows.setdefault(cell.row, {})[cell.column] = _compared_cell(cell, ends)
    return ComparedTable(
        title=table.title, rows=rows, section=table.section, best=_best_cells(rows) if table.best else {}
    )


def _compared_cell(cell: Cell, found: Sequence[Reproduced]) -> ComparedCell:
    """The cell with the figure that was found, or the two ends of a range."""
    verdict, published = _verdict(cell, found), cell.published
    found = [] if verdict == Verdict.NOT_RUN else found
    one = found[0] if len(found) == 1 else None
    return ComparedCell(
        verdict=verdict,
        scale=cell.scale,
        printed=published and published.text,
        shown=BETWEEN.join(cell.form.text(each.value, each.std, each.interval) for each in found) or None,
        published=published and published.value,
        reproduced=found[0].value if found else None,
        published_std=published and published.std,
        published_end=published and published.end,
        reproduced_end=found[1].value if len(found) == 2 else None,
        std=one and one.std,
        interval=one and one.interval,
        better=found[0].better if found else None,
    )


def _best_cells(rows: Mapping[str, Mapping[str, ComparedCell]]) -> dict[str, set[tuple[str, str]]]:
    """Row and column of the best published and reproduced figures of each column."""
    best: dict[str, set[tuple[str, str]]] = {"published": set(), "reproduced": set()}
    for column in next(iter(rows.values())):
        cells = {(row, column): columns[column] for row, columns in rows.items()}
        scale = SCALES[next(iter(cells.values())).scale]
        of_scale = "higher" if scale.is_best_high else "lower"
        said = next((cell.better for cell in cells.values() if cell.better), of_scale)
        for which in best if said != "neither" else ():
            values = {place: value for place, cell in cells.items() if (value := getattr(cell, which)) is not None}
            top = (max if said == "higher" else min)(values.values(), default=None)
            best[which] |= {place for place, value in values.items() if value == top and len(values) > 1}
    return best


def _find(address: str | None, reports: Reports, where: str) -> Iterator[Reproduced]:
    """The figure at an address, or at the two of a range; none of what was not run."""
    for end in address.split(BETWEEN) if address else ():
        try:
            found = find_figure(end, reports)
        except LookupError as error:
            raise InputError(f"{PUBLISHED}: {where}: {end}: {error.args[0]}") from None
        if found is not None:
            yield found


def _on_scale(found: Reproduced, scale: str, where: str) -> Reproduced:
    if (found.scale in SHARES) != (scale in SHARES):
        raise InputError(f"{PUBLISHED}: {where}: scale: {scale!r} is not allowed; it is on the scale {found.scale}")
    times = factor(found.scale, scale)
    interval: Interval | None = found.interval and {end: times * at for end, at in found.interval.items()}
    std = None if found.std is None else times * found.std
    return replace(found, value=times * found.value, scale=scale, std=std, interval=interval)


def _verdict(cell: Cell, found: Sequence[Reproduced]) -> Verdict:
    """`found` has one figure, or those of both ends of a range; fewer where they were not run."""
    if cell.address is None or len(found) < len(cell.address.split(BETWEEN)):
        return Verdict.NOT_RUN
    if found[0].is_timed:
        return Verdict.OF_MACHINE
    if cell.published is None:
        return Verdict.NOT_PUBLISHED
    first, last = cell.published.value, cell.published.end
    if last is None:
        return _of_figure(cell, first, found[0])
    if len(found) == 2:
        verdicts = [_of_figure(cell, printed, each) for printed, each in zip((first, last), found, strict=True)]
        return max(verdicts, key=list(Verdict).index)
    if min(first, last) - cell.published.half <= found[0].value <= max(first, last) + cell.published.half:
        return Verdict.IN_RANGE
    nearest = min((first, last), key=lambda end: abs(end - found[0].value))
    return _of_figure(cell, nearest, found[0])


def _of_figure(cell: Cell, printed: float, found: Reproduced) -> Verdict:
    if abs(found.value - printed) <= HALF * 10.0**-cell.digits:
        return Verdict.EXACT
    if found.is_exact:
        return Verdict.BEYOND
    if found.interval is None:
        return Verdict.UNKNOWN
    if found.interval["low"] <= printed <= found.interval["high"]:
        return Verdict.WITHIN
    return Verdict.ONE_SEED if found.std is None and (cell.address or "").startswith(SEEDED) else Verdict.BEYOND


def notices(tables: Mapping[str, Iterable[Cell]]) -> list[str]:
    """One line a flag of the published figures: the table, the task and method, the flag and its evidence.

    Figures belong together where a table has them of one task and one method: at addresses that differ in the end.
    """
    found = []
    for table, cells in tables.items():
        for name, group in _groups(cells).items():
            figures, scales, halves = _figures(group)
            flags = figure_flags(figures, scales)
            reach = halves.get("f1", 0) + halves.get("exact_match", 0)
            if "f1_below_exact_match" in flags and figures["f1"] + reach >= figures["exact_match"]:
                del flags["f1_below_exact_match"]  # they were printed with other digits and may be equal
            found += [f"{table}: {name}: {flag.replace('_', ' ')}: {evidence}" for flag, evidence in flags.items()]
    return found


def _groups(cells: Iterable[Cell]) -> dict[str, dict[str, Cell]]:
    """The published scores, by task and method and by name."""
    groups: dict[str, dict[str, Cell]] = {}
    for cell in cells:
        kind, *parts = (cell.address or "").split(".")
        if kind in SCORED and cell.published is not None and cell.published.end is None:
            what = ("before training", *parts[:-1]) if kind == "before" else parts[:-1]
            groups.setdefault(" ".join(what), {})[parts[-1]] = cell
    return groups


def _figures(group: Mapping[str, Cell]) -> tuple[dict[str, float], dict[str, str], dict[str, float]]:
    """Published figures, their scales and half of their last digits, on the scales that the rules expect."""
    figures, scales, halves = {}, {}, {}
    ruled = ANSWERS if "exact_match" in group else CLASSES
    for name, cell in group.items():
        assert cell.published is not None
        given = "percentage" if cell.scale == "percent" else cell.scale
        scales[name] = ruled.get(name, given) if given in SHARES else given
        times = factor(given, scales[name])
        figures[name], halves[name] = cell.published.value * times, cell.published.half * times
    return figures, scales, halves
