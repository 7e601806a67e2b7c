"""Memory of tuning: a published study's formulas and example, beside an estimate that counts what is alive.

How many parameters a model has: torchinfo's summary, every row, the formula and what others wrote of it.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from retrace.estimates.architectures import Published
from retrace.estimates.formulas import ClosedForm
from retrace.estimates.parameters import Row
from retrace.report.blocks import Code, Section, Table, figure_text

TITLE = "Memory of tuning"
NOTHING = "–"


@dataclass(frozen=True)
class Coefficients:
    """Memory that grows with batch b and length l, in a unit."""

    name: str
    constant: float
    per_token: float
    per_token_pair: float


@dataclass(frozen=True)
class KeptFacts:
    """An equation of a layer: what has to be kept of it for the backward pass, and how much that is."""

    number: int
    text: str
    kept: str
    a_layer: str  # bytes, as a formula
    per_token: float  # of the example, all layers, in 10⁶ bytes × bl
    per_token_pair: float  # × bl²


@dataclass(frozen=True)
class Estimate:
    """What one update takes, by part, in bytes."""

    model: str
    load: str  # batch and length
    method: str
    parameters: int
    trained: int
    parts: Mapping[str, int]  # weights and the like; they add up to the whole
    saved: float | None  # share of what the first method of this load takes; None of the first itself
    by_formula: int | None
    saved_by_formula: float | None

    @property
    def whole(self) -> int:
        """Bytes at the peak."""
        return sum(self.parts.values())


@dataclass(frozen=True)
class MemoryFacts:
    """All that the section says."""

    formulas: Mapping[str, str]  # of bytes, or of parameters, by what they are of
    equations: Sequence[KeptFacts]
    printed: Mapping[str, str]  # the example's, by what is tuned
    example: Sequence[Coefficients]
    sizes: str  # of the example
    example_saved: Mapping[str, float]  # by load: the share that adapters save by the formulas
    questionable: Sequence[str]
    claim: float  # the share that adapters are said to save at least
    estimates: Sequence[Estimate]
    assumed: str  # by the estimates


def memory_section(facts: MemoryFacts) -> Section:
    """Formulas, example, what is questionable in them, and estimates."""
    formulas = Table(("of", "formula"), list(facts.formulas.items()))
    equations = Table(
        ("equation", "of a layer", "kept of it", "bytes a layer", "the example, 10⁶ bytes × bl", "× bl²"),
        [
            (f"({row.number})" if row.number else "together", row.text, row.kept, row.a_layer,
             figure_text(row.per_token, 4), figure_text(row.per_token_pair, 4))
            for row in facts.equations
        ],
    )  # fmt: skip
    printed = Table(("the example as printed", "MiB"), list(facts.printed.items()))
    example = Table(
        ("the example by the formulas", "constant", "× bl²", "× bl"),
        [
            (row.name, f"{row.constant:,.0f}", figure_text(row.per_token_pair, 4), figure_text(row.per_token))
            for row in facts.example
        ],
    )
    saved = Table(
        ("batch × length", "% that adapters save in the example by the formulas"),
        [(load, _percent(share)) for load, share in facts.example_saved.items()],
    )
    blocks = [formulas, facts.sizes, equations, printed, example, saved, *facts.questionable, facts.assumed]
    return Section(TITLE, [*blocks, _estimates(facts.estimates), *_verdicts(facts)])


def _estimates(estimates: Sequence[Estimate]) -> Table:
    parts = list(estimates[0].parts)
    return Table(
        ("model", "batch × length", "method", "parameters", "trained", *(f"{part}, MiB" for part in parts),
         "estimate, MiB", "% saved", "by the formula, MiB", "% saved by the formula"),
        [
            (each.model, each.load, each.method, f"{each.parameters:,}", f"{each.trained:,}",
             *(_mebibytes(each.parts[part]) for part in parts), _mebibytes(each.whole), _percent(each.saved),
             _mebibytes(each.by_formula), _percent(each.saved_by_formula))
            for each in estimates
        ],
    )  # fmt: skip


def _verdicts(facts: MemoryFacts) -> list[str]:
    """How far the claim holds, by the formulas and by the estimates."""
    said = f"that at least {100 * facts.claim:.0f}% is saved"
    lines = []
    for by, shares in (
        ("its own formulas in its example", list(facts.example_saved.values())),
        ("the estimates", [each.saved for each in facts.estimates if each.saved is not None]),
    ):
        held = sum(share >= facts.claim for share in shares)
        span = f"{_percent(min(shares))}% to {_percent(max(shares))}%"
        lines.append(f"By {by}, {said} holds in {held} of {len(shares)} cases: {span} is saved.")
    return lines


def _mebibytes(count: int | None) -> str:
    return NOTHING if count is None else f"{count / 2**20:,.0f}"


def _percent(share: float | None) -> str:
    return NOTHING if share is None else f"{100 * share:.1f}"


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
