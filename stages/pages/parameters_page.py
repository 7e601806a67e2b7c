"""How many parameters a model has: torchinfo's summary, every row, the formula and what others wrote of it."""

from collections.abc import Mapping, Sequence

from stages.nets.closed_form import ClosedForm
from stages.nets.counts import Row
from stages.nets.presets import Published
from stages.pages.content import Code, Section, Table

LONG = 20  # rows, from which on a table is folded away
Printed = tuple[str, int, int]  # a parameter or module, what a report printed of it, and what it has


def summary_section(
    title: str, summary: str, summed: int, sums: Mapping[str, int], printed: Sequence[Printed] = ()
) -> Section:
    """torchinfo's summary with the total that it comes to, and the model's own."""
    notes = [
        f"torchinfo counts weights that two modules share once for each: {summed:,}. The model has {sums['total']:,}."
    ]
    notes = notes if summed != sums["total"] else []
    return Section(title, [Code(summary, "text"), *notes, sums_table(sums), *_printed_table(printed)])


def rows_section(title: str, rows: Sequence[Row], sums: Mapping[str, int], printed: Sequence[Printed] = ()) -> Section:
    """A row for each parameter or module, and the totals."""
    is_whole = all(row.trained == row.size for row in rows)
    lines = [(row.name, f"{row.size:,}", f"{row.trained:,}") for row in rows]
    table = Table(
        ("Modules", "Parameters") if is_whole else ("Modules", "Parameters", "Trained"),
        [line[:2] for line in lines] if is_whole else lines,
        f"{len(rows)} rows" if len(rows) > LONG else "",
    )
    return Section(title, [sums_table(sums), *_printed_table(printed), table])


def _printed_table(printed: Sequence[Printed]) -> list[Table]:
    rows = [(name, f"{said:,}", f"{has:,}", "exact" if said == has else f"{has - said:+,}")
            for name, said, has in printed]  # fmt: skip
    return [Table(("part", "published", "Retrace", "difference"), rows)] if rows else []


def formula_section(title: str, symbols: str, form: ClosedForm) -> Section:
    """The formula's terms, their sum, and what makes up the difference to the model."""
    rows = [(term.name, term.formula, f"{term.count:,}") for term in form.terms]
    rows.append(("by the formula", "", f"{form.total:,}"))
    rows += [(f"beyond the formula: {part}", "", f"{more:+,}") for part, more in form.differences.items()]
    rows.append(("the model", "", f"{form.total + sum(form.differences.values()):,}"))
    return Section(title, [symbols, Table(("part", "formula", "parameters"), rows)])


def equations_section(title: str, symbols: str, equations: Sequence[Sequence[str]]) -> Section:
    """Each equation of a report: its number, the equation, the figure that it gives, and Retrace's."""
    return Section(title, [symbols, Table(("", "equation", "gives", "Retrace"), list(equations))])


def differences_section(title: str, published: Sequence[Published]) -> Section:
    """Each published count, and what makes up the difference to the model."""
    tables = [
        Table(
            ("part", "parameters"),
            [
                (f"published: {entry.source}", f"{entry.total:,}"),
                *((part, f"{more:+,}") for part, more in entry.differences.items()),
                ("the model", f"{entry.total + sum(entry.differences.values()):,}"),
            ],
        )
        for entry in published
    ]
    return Section(title, tables)


def sums_table(sums: Mapping[str, int]) -> Table:
    """The totals; those of the head and of what a method added where there are any."""
    shown = {name: count for name, count in sums.items() if count or name in ("total", "trainable", "frozen")}
    return Table(("parameters", "count"), [(name.replace("_", " "), f"{count:,}") for name, count in shown.items()])
