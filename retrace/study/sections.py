"""Sections of a study's page about parameters and memory, as its published.yaml lists them under `sections`."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from torchinfo import summary

from retrace.core.errors import InputError
from retrace.core.settings import build, require
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
from retrace.finetuning.method import read_method
from retrace.report.blocks import NOTHING, Code, Section, Table
from retrace.study.addresses import NO_HEAD, counted, method_names
from retrace.study.memory import MemoryEntry, memory_section
from retrace.study.published import PUBLISHED

HeadName = Literal["none", "classification", "qa", "lm"]
HEAD_TITLES: dict[HeadName, str] = {
    "none": "", "classification": " with a classifier", "qa": " with a head for answers", "lm": " as a language model",
}  # fmt: skip
DEPTH = 3  # levels of torchinfo's summary
LONG = 20  # rows, from which on a table is folded away


@dataclass(frozen=True)
class ModelEntry:
    """A section about a model as it was published."""

    kind: Literal["formula", "differences"]
    model: str  # of retrace/estimates/architectures

    def __post_init__(self) -> None:
        _check_model(self.model)
        require(
            self.kind != "differences" or bool(find_model(self.model).published),
            "model", self.model, "retrace/estimates/architectures has no published count of it",
        )  # fmt: skip


@dataclass(frozen=True)
class TunedEntry:
    """A section about a model under a head, as a method tunes it."""

    kind: Literal["parameters", "modules", "summary"]
    model: str  # of retrace/estimates/architectures
    head: HeadName = NO_HEAD
    method: str = "full"
    part: str = ""  # a module, such as encoder.layer.0; the whole model where empty
    published: dict[str, int] = field(default_factory=dict)  # what was printed, by parameter or module

    def __post_init__(self) -> None:
        _check_model(self.model)

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


def _check_model(model: str) -> None:
    require(model in preset_names(), "model", model, f"expected one of {', '.join(preset_names())}")


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


def _rows(counts: Sequence[Count], by: Literal["parameter", "module"]) -> Table:
    lines = [(name, f"{size:,}", f"{trained:,}") for name, size, trained in rows(counts, by)]
    folded = f"{len(lines)} rows" if len(lines) > LONG else ""
    if all(count.is_trained for count in counts):
        return Table(("Modules", "Parameters"), [line[:2] for line in lines], folded)
    return Table(("Modules", "Parameters", "Trained"), lines, folded)


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
    for published in find_model(entry.model).published:
        parts = [(part, f"{more:+,}") for part, more in published.differences.items()]
        whole = ("the model", f"{published.total + sum(published.differences.values()):,}")
        lines = [(f"published: {published.source}", f"{published.total:,}"), *parts, whole]
        tables.append(Table(("part", "parameters"), lines))
    return Section(f"Published counts of {entry.model}", tables)


_KINDS: dict[str, tuple[type[Any], Callable[[Any, Mapping[str, Any]], Section]]] = {
    "summary": (TunedEntry, _tuned),
    "parameters": (TunedEntry, _tuned),
    "modules": (TunedEntry, _tuned),
    "formula": (ModelEntry, _formula),
    "differences": (ModelEntry, _differences),
    "equations": (EquationsEntry, _equations),
    "memory": (MemoryEntry, memory_section),
}
