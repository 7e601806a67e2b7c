"""Sections of a study's page about parameters and memory, as its published.yaml lists them under `sections`.

The one about memory is of a published study of parameter-efficient tuning: its formulas, its example, and an estimate
beside them that counts what is alive at once.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, Field, PositiveInt
from torchinfo import summary

from retrace.core.errors import InputError
from retrace.core.settings import build, require
from retrace.estimates import memory
from retrace.estimates.architectures import (
    HEADS,
    Count,
    closed_form,
    count_parameters,
    find_model,
    preset_names,
    rows,
    sums,
)
from retrace.estimates.memory import Load, Needs, update_needs
from retrace.finetuning.method import read_method
from retrace.models.heads import longest_input
from retrace.report.blocks import NOTHING, Code, Fold, Section, Table, figure_text
from retrace.study.comparison import NO_HEAD, counted, method_names
from retrace.study.published import PUBLISHED
from retrace.training.settings import OptimizerSettings

HeadName = Literal["none", "classification", "qa", "lm"]
HEAD_TITLES: dict[HeadName, str] = {
    "none": "", "classification": " with a classifier", "qa": " with a head for answers", "lm": " as a language model",
}  # fmt: skip
DEPTH = 3  # levels of torchinfo's summary
LONG = 20  # rows, from which on a table is folded away
ASSUMED = (
    "The estimates run the real model with a classifier on tensors without values and count what is alive at once: "
    "an update in float32 with AdamW and attention that keeps its weights, as the study has it."
)
LOADS = ((1, 1), (32, 128), (32, 512))  # batch and length at which the example's formulas are compared
EXAMPLE_LENGTH = 128  # tokens; the example is estimated with as many examples as the model
FORMULAS = (
    ("tuning every weight, bytes", memory.FULL),
    ("tuning adapters, bytes", memory.ADAPTER),
    ("N, parameters", memory.PARAMETERS),
    ("N_ad, parameters of adapters", memory.ADAPTER_PARAMETERS),
)


def _known(model: str) -> str:
    if model not in preset_names():
        raise ValueError(f"{model!r} is not allowed; expected one of {', '.join(preset_names())}")
    return model


Model = Annotated[str, AfterValidator(_known)]  # of retrace/estimates/architectures


@dataclass(frozen=True)
class ModelEntry:
    """A section about a model as it was published."""

    kind: Literal["formula", "differences"]
    model: Model

    def __post_init__(self) -> None:
        require(
            self.kind != "differences" or bool(find_model(self.model).published),
            "model", self.model, "retrace/estimates/architectures has no published count of it",
        )  # fmt: skip


@dataclass(frozen=True)
class TunedEntry:
    """A section about a model under a head, as a method tunes it."""

    kind: Literal["parameters", "modules", "summary"]
    model: Model
    head: HeadName = NO_HEAD
    method: str = "full"
    part: str = ""  # a module, such as encoder.layer.0; the whole model where empty
    published: dict[str, int] = field(default_factory=dict)  # what was printed, by parameter or module

    @property
    def title(self) -> str:
        """The model, its head and how it is tuned."""
        tuned = "" if self.method == "full" else f", tuned by {self.method}"
        return f"{self.model}{HEAD_TITLES[self.head]}{tuned}" + (f": {self.part}" if self.part else "")


@dataclass(frozen=True)
class Equation:
    """An equation of the report, as text, and the figure that it gives."""

    number: str
    equation: str
    gives: str  # by the report, or by what it printed
    figures: tuple[str, ...] = ()  # addresses of what is counted; Retrace's figure is their sum


@dataclass(frozen=True)
class EquationsEntry:
    """A section with equations of the report beside the figures that they give."""

    kind: Literal["equations"]
    title: str
    symbols: str
    equations: tuple[Equation, ...]


@dataclass(frozen=True)
class MemoryEntry:
    """A section about the study's formulas, and what is estimated beside them."""

    kind: Literal["memory"]
    model: Model = "roberta-base"
    batch: PositiveInt = 32  # examples of an update
    lengths: Annotated[tuple[PositiveInt, ...], Field(min_length=1)] = (128, 512)  # tokens of an example
    # What the others save is of what the first takes.
    methods: Annotated[tuple[str, ...], Field(min_length=2)] = ("full", "adapter", "lora")
    example: bool = True  # estimate the study's 3-billion example too, which takes seconds

    def __post_init__(self) -> None:
        longest = longest_input(find_model(self.model).config)
        require(max(self.lengths) <= longest, "lengths", max(self.lengths), f"expected 1 to {longest} tokens")


def size_sections(entries: Sequence[Mapping[str, Any]], params: Mapping[str, Any]) -> list[Section]:
    """A section for each entry; `params` is the study's params.yaml, whose methods count.

    Raises InputError, which names the entry and the key, where an entry is wrong.
    """
    return [_section(entry, f"sections[{place}]", params) for place, entry in enumerate(entries)]


def _section(values: Mapping[str, Any], key: str, params: Mapping[str, Any]) -> Section:
    kind = values.get("kind") if isinstance(values, Mapping) else None
    if kind not in _KINDS:
        raise InputError(f"{PUBLISHED}: {key}.kind: {kind!r} is not allowed; expected one of {', '.join(_KINDS)}")
    settings, make = _KINDS[kind]
    entry = build(settings, {key: values}, key, PUBLISHED)
    there = method_names(params)
    for method in getattr(entry, "methods", [getattr(entry, "method", "full")]):
        if method not in there:
            raise InputError(f"{PUBLISHED}: {key}: no method {method!r}; there is: {', '.join(there)}")
    try:
        return make(entry, params)
    except LookupError as error:
        raise InputError(f"{PUBLISHED}: {key}: {error.args[0]}") from None


def _tuned(entry: TunedEntry, params: Mapping[str, Any]) -> Section:
    """torchinfo's summary, or a row for each parameter or module; and the totals."""
    config = find_model(entry.model).config
    model, counts = count_parameters(HEADS.get(entry.head), config, read_method(params, entry.method).tune)
    modules = dict(model.named_modules())
    if entry.part not in modules:
        raise LookupError(f"part: {entry.part!r} is no module of {entry.model}")
    shown = [count for count in counts if not entry.part or count.name.startswith(f"{entry.part}.")]
    found, printed = sums(shown), _printed(entry, counts)
    if entry.kind != "summary":
        return Section(
            f"Parameters of {entry.title}, by {entry.kind.removesuffix('s')}",
            [_sums(found), *printed, _rows(shown, "parameter" if entry.kind == "parameters" else "module")],
        )
    info = summary(modules[entry.part], depth=DEPTH, verbose=0)
    note = (
        f"torchinfo counts weights that two modules share once for each: {info.total_params:,}. "
        f"The model has {found['total']:,}."
    )
    notes = [note] if info.total_params != found["total"] else []
    return Section(f"Summary of {entry.title}", [Code(str(info), "text"), *notes, _sums(found), *printed])


def _rows(counts: Sequence[Count], by: Literal["parameter", "module"]) -> Table | Fold:
    shown = 2 if all(count.is_trained for count in counts) else 3  # columns
    lines = [(name, f"{size:,}", f"{trained:,}")[:shown] for name, size, trained in rows(counts, by)]
    table = Table(("Modules", "Parameters", "Trained")[:shown], lines)
    return Fold(f"Every {by}", f"{len(lines)} rows", [table]) if len(lines) > LONG else table


def _sums(sums: Mapping[str, int]) -> Table:
    """The totals; those of the head and of what a method added where there are any."""
    shown = {name: count for name, count in sums.items() if count or name in ("total", "trainable", "frozen")}
    return Table(("parameters", "count"), [(name.replace("_", " "), f"{count:,}") for name, count in shown.items()])


def _printed(entry: TunedEntry, counts: Sequence[Count]) -> list[Table]:
    """What was printed of a parameter or a module beside what there is; no table where nothing was."""
    lines = []
    for name, printed in entry.published.items():
        sizes = [count.size for count in counts if count.name == name or count.name.startswith(f"{name}.")]
        if not sizes:
            raise LookupError(f"published: {entry.model} has no {name}")
        more = sum(sizes) - printed
        lines.append((name, f"{printed:,}", f"{sum(sizes):,}", f"{more:+,}" if more else "exact"))
    return [Table(("part", "published", "Retrace", "difference"), lines)] if lines else []


def _equations(entry: EquationsEntry, params: Mapping[str, Any]) -> Section:
    """Each equation of a report: its number, the equation, the figure that it gives, and Retrace's."""
    lines = []
    for row in entry.equations:
        found = [counted(address, params) for address in row.figures]
        lines.append((row.number, row.equation, row.gives, f"{sum(found):,.0f}" if found else NOTHING))
    return Section(entry.title, [entry.symbols, Table(("", "equation", "gives", "Retrace"), lines)])


def _formula(entry: ModelEntry, _: Mapping[str, Any]) -> Section:
    """The formula's terms, their sum, and what makes up the difference to the model."""
    config = find_model(entry.model).config
    form = closed_form(config, count_parameters(None, config)[1])
    assert form is not None, f"every architecture's family has a formula, but {config.model_type} has none"
    lines = [(term.name, term.formula, f"{term.count:,}") for term in form.terms]
    lines.append(("by the formula", "", f"{form.total:,}"))
    lines += [(f"beyond the formula: {part}", "", f"{more:+,}") for part, more in form.differences.items()]
    lines.append(("the model", "", f"{form.total + sum(form.differences.values()):,}"))
    table = Table(("part", "formula", "parameters"), lines)
    return Section(f"Parameters of {entry.model} by the formula", [form.symbols, table])


def _differences(entry: ModelEntry, _: Mapping[str, Any]) -> Section:
    """Each published count, and what makes up the difference to the model."""
    tables = []
    for printed in find_model(entry.model).published:
        parts = [(part, f"{more:+,}") for part, more in printed.differences.items()]
        whole = ("the model", f"{printed.total + sum(printed.differences.values()):,}")
        lines = [(f"published: {printed.source}", f"{printed.total:,}"), *parts, whole]
        tables.append(Table(("part", "parameters"), lines))
    return Section(f"Published counts of {entry.model}", tables)


@dataclass(frozen=True)
class Estimate:
    """What one update takes, and what it takes by the study's formula where that has the method."""

    model: str
    load: str  # batch and length
    method: str
    needs: Needs
    by_formula: int | None  # bytes
    saved: float | None  # share of what the first method of this load takes; None of the first itself
    saved_by_formula: float | None

    @property
    def cells(self) -> dict[str, str]:
        """The estimate's row in the table, by heading."""
        needs = self.needs
        parts = {
            "weights": needs.weights, "gradients": needs.gradients, "moments": needs.moments,
            "activations": needs.passing, "estimate": needs.peak,
        }  # fmt: skip
        return {
            "model": self.model, "batch × length": self.load, "method": self.method,
            "parameters": f"{needs.parameters:,}", "trained": f"{needs.trained:,}",
            **{f"{part}, MiB": _mebibytes(size) for part, size in parts.items()}, "% saved": _percent(self.saved),
            "by the formula, MiB": _mebibytes(self.by_formula),
            "% saved by the formula": _percent(self.saved_by_formula),
        }  # fmt: skip


def memory_section(entry: MemoryEntry, params: Mapping[str, Any]) -> Section:
    """Formulas, example, what is questionable in them, and estimates by the methods of params.yaml."""
    exact, config = memory.parameters(memory.EXAMPLE), memory.EXAMPLE
    sizes = (
        f"The example: v = {config.vocab_size:,}, h = {config.hidden_size:,}, h′ = {config.intermediate_size:,}, "
        f"d = {config.num_hidden_layers}, a = {config.num_attention_heads}, h_ad = {memory.EXAMPLE_WIDTH}; "
        f"N = {memory.EXAMPLE_PARAMETERS:,} as printed, {exact:,} by its formula."
    )
    saved = {f"{batch} × {length}": _saved_by_formula(batch, length) for batch, length in LOADS}
    estimates = memory_estimates(entry, params)
    rows = [each.cells for each in estimates]
    return Section("Memory of tuning", [
        Table(("of", "formula"), FORMULAS), sizes, _layer_equations(),
        Table(("the example as printed", "MiB"), list(memory.EXAMPLE_PRINTED.items())), _example(exact),
        Table(("batch × length", "% that adapters save in the example by the formulas"),
              [(load, _percent(share)) for load, share in saved.items()]),
        *memory.QUESTIONABLE, ASSUMED, Table(list(rows[0]), [tuple(row.values()) for row in rows]),
        _claim("its own formulas in its example", list(saved.values())),
        _claim("the estimates", [each.saved for each in estimates if each.saved is not None]),
    ])  # fmt: skip


def memory_estimates(entry: MemoryEntry, params: Mapping[str, Any]) -> list[Estimate]:
    """Of every length and method of the entry, and of the study's example where that is wanted."""
    config = find_model(entry.model).config
    cases = [(entry.model, config, length, entry.methods, params) for length in entry.lengths]
    if entry.example:
        cases.append(("the study's example", memory.EXAMPLE, EXAMPLE_LENGTH, ("full", "adapter"), {}))
    found: list[Estimate] = []
    for name, config, length, methods, settings in cases:
        load, first = Load(entry.batch, length, 0, bf16=False, attention="eager"), None
        for label in methods:
            method = read_method(settings, label)
            needs = update_needs(HEADS["classification"], config, load, OptimizerSettings(kind="adamw"), method.tune)
            formula = memory.formula_memory(method, config, needs)
            by_formula = formula and formula[1].at(entry.batch, length)
            saved = first and 1 - needs.peak / first.needs.peak
            saved_by_formula = 1 - by_formula / first.by_formula if first and first.by_formula and by_formula else None
            found.append(Estimate(name, f"{entry.batch} × {length}", label, needs, by_formula, saved, saved_by_formula))
            first = first or found[-1]
    return found


def _layer_equations() -> Table:
    """What a layer's equations keep for the backward pass, and what that is together."""
    config, rows = memory.EXAMPLE, []
    total = [sum(getattr(each, size) for each in memory.EQUATIONS) for size in ("hidden", "pairs", "inner")]
    for each in (*memory.EQUATIONS, memory.Equation(0, "", "", *total)):
        terms = {"blh": each.hidden, "bal²": each.pairs, "blh′": each.inner}
        kept = each.hidden * config.hidden_size + each.inner * config.intermediate_size
        per_token = config.num_hidden_layers * kept / memory.UNIT
        per_token_pair = config.num_hidden_layers * each.pairs * config.num_attention_heads / memory.UNIT
        formula = " + ".join(f"{times}{of}" for of, times in terms.items() if times)
        number = f"({each.number})" if each.number else "together"
        rows.append((number, each.text, each.kept, formula, figure_text(per_token, 4), figure_text(per_token_pair, 4)))
    header = ("equation", "of a layer", "kept of it", "bytes a layer", "the example, 10⁶ bytes × bl", "× bl²")
    return Table(header, rows)


def _example(exact: int) -> Table:
    """The example's memory by the formulas, with its number of parameters as printed and as its formula has it."""
    rounded, rows = memory.EXAMPLE_PARAMETERS, []
    for what, count, unit in (
        ("10⁶ bytes, N as printed", rounded, memory.UNIT),
        ("MiB, N as printed", rounded, 2**20),
        ("MiB, N by its formula", exact, 2**20),
    ):
        for method, of in memory.example_memory(count).items():
            pair, token = figure_text(of.per_token_pair / unit, 4), figure_text(of.per_token / unit)
            rows.append((f"{method}, {what}", f"{of.constant / unit:,.0f}", pair, token))
    return Table(("the example by the formulas", "constant", "× bl²", "× bl"), rows)


def _saved_by_formula(batch: int, length: int) -> float:
    full, adapter = (of.at(batch, length) for of in memory.example_memory().values())
    return 1 - adapter / full


def _claim(by: str, shares: Sequence[float]) -> str:
    """How far the study's claim holds."""
    held = sum(share >= memory.CLAIM for share in shares)
    span = f"{_percent(min(shares))}% to {_percent(max(shares))}%"
    said = f"that at least {100 * memory.CLAIM:.0f}% is saved"
    return f"By {by}, {said} holds in {held} of {len(shares)} cases: {span} is saved."


def _mebibytes(count: int | None) -> str:
    return NOTHING if count is None else f"{count / 2**20:,.0f}"


def _percent(share: float | None) -> str:
    return NOTHING if share is None else f"{100 * share:.1f}"


_KINDS: dict[str, tuple[type[Any], Callable[[Any, Mapping[str, Any]], Section]]] = {
    "summary": (TunedEntry, _tuned),
    "parameters": (TunedEntry, _tuned),
    "modules": (TunedEntry, _tuned),
    "formula": (ModelEntry, _formula),
    "differences": (ModelEntry, _differences),
    "equations": (EquationsEntry, _equations),
    "memory": (MemoryEntry, memory_section),
}
