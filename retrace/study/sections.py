"""Sections of a study's page about parameters and memory, listed under `sections` in its published.yaml.

The one about memory shows Retrace's estimates next to what the formulas of a published study of parameter-efficient
tuning give.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Annotated, Any, Literal, cast

import pandas as pd
from pydantic import Field, PositiveInt
from torchinfo import summary
from transformers import PreTrainedConfig

from retrace.core.errors import InputError
from retrace.core.settings import build, require, require_one_of
from retrace.estimates.architectures import (
    HEADS,
    Parameter,
    closed_form,
    count_parameters,
    find_architecture,
    rows,
    sums,
)
from retrace.estimates.formulas import EXAMPLE, formula_memory
from retrace.estimates.memory import Load, update_needs
from retrace.models.heads import longest_input
from retrace.report.blocks import NOTHING, Code, Fold, Section, Table, figure_text
from retrace.study.comparison import NO_HEAD, counted, known_method
from retrace.study.published import PUBLISHED
from retrace.training.settings import OptimizerSettings

HeadName = Literal["none", "classification", "qa", "lm"]
HEAD_TITLES: dict[HeadName, str] = {
    "none": "", "classification": " with a classifier", "qa": " with a head for answers", "lm": " as a language model",
}  # fmt: skip
DEPTH = 3  # levels of torchinfo's summary
LONG = 20  # rows; a longer table is folded away
ASSUMED = (
    "The estimates run the real model with a classifier on tensors without values and count what is alive at once: "
    "an update in float32 with AdamW and attention that keeps its weights, as the study has it."
)
EXAMPLE_LENGTH = 128  # tokens; the example is estimated with as many examples as the model


@dataclass(frozen=True)
class ModelEntry:
    """A section about a model as it was published."""

    kind: Literal["formula", "differences"]
    model: str  # one of retrace/estimates/architectures.json, as in the other sections


@dataclass(frozen=True)
class TunedEntry:
    """A section about a model with a head, fine-tuned with a method."""

    kind: Literal["parameters", "modules", "summary"]
    model: str
    head: HeadName = NO_HEAD
    method: str = "full"
    part: str = ""  # a module, such as encoder.layer.0; empty: the whole model
    published: dict[str, int] = field(default_factory=dict)  # printed counts, by parameter or module

    @property
    def title(self) -> str:
        """The model, its head, method and part."""
        tuned = "" if self.method == "full" else f", tuned by {self.method}"
        return f"{self.model}{HEAD_TITLES[self.head]}{tuned}" + (f": {self.part}" if self.part else "")


@dataclass(frozen=True)
class Equation:
    """An equation of the report, as text, and the figure that it gives."""

    number: str
    equation: str
    gives: str  # according to the report, or as it is printed
    figures: tuple[str, ...] = ()  # addresses; Retrace's figure is the sum of theirs


@dataclass(frozen=True)
class EquationsEntry:
    """A section with the report's equations and the figures that they give."""

    kind: Literal["equations"]
    title: str
    symbols: str
    equations: tuple[Equation, ...]


@dataclass(frozen=True)
class MemoryEntry:
    """A section about the memory of fine-tuning: the study's formulas next to estimates."""

    kind: Literal["memory"]
    model: str = "roberta-base"
    batch: PositiveInt = 32  # examples of an update
    lengths: Annotated[tuple[PositiveInt, ...], Field(min_length=1)] = (128, 512)  # tokens of an example
    methods: Annotated[tuple[str, ...], Field(min_length=2)] = ("full", "adapter", "lora")  # the first is the reference
    example: bool = True  # whether to estimate the study's example too: 64 layers, half a minute

    def __post_init__(self) -> None:
        longest = longest_input(find_architecture(self.model).config)
        require(max(self.lengths) <= longest, "lengths", max(self.lengths), f"expected 1 to {longest} tokens")


def size_sections(entries: Sequence[Mapping[str, Any]], params: Mapping[str, Any]) -> list[Section]:
    """A section for each entry; methods are those of `params`, the study's params.yaml.

    Raises InputError, which names the entry and the key, where an entry is wrong.
    """
    found = []
    for place, values in enumerate(entries):
        key, kind = f"sections[{place}]", values.get("kind")
        require_one_of([*_KINDS], kind, f"{key}.kind", PUBLISHED)
        settings, make = _KINDS[cast(str, kind)]
        try:
            found.append(make(build(settings, {key: values}, key, PUBLISHED), params))
        except LookupError as error:
            raise InputError(f"{PUBLISHED}: {key}: {error.args[0]}") from None
    return found


def _tuned(entry: TunedEntry, params: Mapping[str, Any]) -> Section:
    """torchinfo's summary, or a row for each parameter or module, and the totals."""
    config = find_architecture(entry.model).config
    model, counts = count_parameters(HEADS.get(entry.head), config, known_method(params, entry.method).tune)
    modules = dict(model.named_modules())
    if entry.part not in modules:
        raise LookupError(f"part: {entry.part!r} is not a module of {entry.model}")
    shown = [count for count in counts if not entry.part or count.name.startswith(f"{entry.part}.")]
    found, printed = sums(shown), _printed(entry, counts)
    if entry.kind != "summary":
        return Section(
            f"Parameters of {entry.title}, by {entry.kind.removesuffix('s')}",
            [_sums(found), *printed, _rows(shown, "parameter" if entry.kind == "parameters" else "module")],
        )
    info, total = summary(modules[entry.part], depth=DEPTH, verbose=0), found["total"]
    note = f"torchinfo counts shared weights once for each module: {info.total_params:,}. The model has {total:,}."
    notes = [note] if info.total_params != total else []
    return Section(f"Summary of {entry.title}", [Code(str(info), "text"), *notes, _sums(found), *printed])


def _rows(counts: Sequence[Parameter], by: Literal["parameter", "module"]) -> Table | Fold:
    shown = 2 if all(count.is_trained for count in counts) else 3  # columns
    lines = [(name, f"{size:,}", f"{trained:,}")[:shown] for name, size, trained in rows(counts, by)]
    table = Table(("Modules", "Parameters", "Trained")[:shown], lines, label=f"Every {by}")
    return Fold(f"Every {by}", f"{len(lines)} rows", [table]) if len(lines) > LONG else table


def _sums(sums: Mapping[str, int]) -> Table:
    """The totals; those of the head and the method only where they are not 0."""
    shown = {name: count for name, count in sums.items() if count or name in ("total", "trainable", "frozen")}
    lines = [(name.replace("_", " "), f"{count:,}") for name, count in shown.items()]
    return Table(("parameters", "count"), lines, label="Parameters")


def _printed(entry: TunedEntry, counts: Sequence[Parameter]) -> list[Table]:
    """The printed counts of parameters or modules next to the model's; no table without any."""
    lines = []
    for name, printed in entry.published.items():
        sizes = [count.size for count in counts if count.name == name or count.name.startswith(f"{name}.")]
        if not sizes:
            raise LookupError(f"published: {entry.model} has no {name}")
        more = sum(sizes) - printed
        lines.append((name, f"{printed:,}", f"{sum(sizes):,}", f"{more:+,}" if more else "exact"))
    header = ("part", "published", "Retrace", "difference")
    return [Table(header, lines, label="Published parameters")] if lines else []


def _equations(entry: EquationsEntry, params: Mapping[str, Any]) -> Section:
    """Each equation of the report, the figure that it gives, and Retrace's."""
    lines = []
    for row in entry.equations:
        found = [counted(address, params) for address in row.figures]
        lines.append((row.number, row.equation, row.gives, f"{sum(found):,.0f}" if found else NOTHING))
    table = Table(("", "equation", "gives", "Retrace"), lines, label=entry.title)
    return Section(entry.title, [entry.symbols, table])


def _formula(entry: ModelEntry, _: Mapping[str, Any]) -> Section:
    """The terms of the formula, their sum, and how the model differs from it."""
    config = find_architecture(entry.model).config
    form = closed_form(config, count_parameters(None, config)[1])
    assert form is not None, "the family of every architecture has a formula"
    lines = [(term.name, term.formula, f"{term.count:,}") for term in form.terms]
    lines.append(("by the formula", "", f"{form.total:,}"))
    lines += [(f"beyond the formula: {part}", "", f"{more:+,}") for part, more in form.differences.items()]
    lines.append(("the model", "", f"{form.total + sum(form.differences.values()):,}"))
    title = f"Parameters of {entry.model} by the formula"
    return Section(title, [form.symbols, Table(("part", "formula", "parameters"), lines, label=title)])


def _differences(entry: ModelEntry, _: Mapping[str, Any]) -> Section:
    """Each published count, and how the model differs from it."""
    published, tables = find_architecture(entry.model).published, []
    if not published:
        raise LookupError(f"retrace/estimates/architectures.json has no published count of {entry.model}")
    for printed in published:
        parts = [(part, f"{more:+,}") for part, more in printed.differences.items()]
        whole = ("the model", f"{printed.total + sum(printed.differences.values()):,}")
        lines = [(f"published: {printed.source}", f"{printed.total:,}"), *parts, whole]
        tables.append(Table(("part", "parameters"), lines, label=f"{entry.model}: {printed.source}"))
    return Section(f"Published counts of {entry.model}", tables)


def memory_section(entry: MemoryEntry, params: Mapping[str, Any]) -> Section:
    """Estimates, and what the study's formulas give, of the model and of the study's example."""
    model = find_architecture(entry.model).config
    estimates = [estimate(entry.model, model, entry.batch, length, entry.methods, params) for length in entry.lengths]
    if entry.example:
        example = ("the study's example", EXAMPLE, entry.batch, EXAMPLE_LENGTH, ("full", "adapter"))
        estimates.append(estimate(*example, params={}))
    return Section("Memory of tuning", [ASSUMED, estimates_table(pd.concat(estimates))])


def estimate(
    name: str, config: PreTrainedConfig, batch: int, length: int, methods: Sequence[str], params: Mapping[str, Any]
) -> pd.DataFrame:
    """What an update of a classifier takes with each method, in bytes, and by the study's formula, if it has one.

    The columns `saved` and `saved by the formula` are shares of what the first method takes, NaN for the first itself.
    """
    load = Load(batch, length, 0, bf16=False, attention="eager", micro_batch=None, recomputes=False)
    rows = []
    for label in methods:
        method = known_method(params, label)
        needs = update_needs(HEADS["classification"], config, load, OptimizerSettings(kind="adamw"), method.tune)
        formula = formula_memory(method, config, needs)
        rows.append({
            "model": name, "batch × length": f"{batch} × {length}", "method": label,
            "parameters": needs.parameters, "trained": needs.trained, "weights": needs.weights,
            "gradients": needs.gradients, "moments": needs.moments, "activations": needs.activations,
            "estimate": needs.peak, "by the formula": math.nan if formula is None else formula.at(batch, length),
        })  # fmt: skip
    found = pd.DataFrame(rows)
    for share, column in (("saved", "estimate"), ("saved by the formula", "by the formula")):
        found[share] = (1 - found[column] / found[column][0]).where(found.index > 0)
    return found


def estimates_table(estimates: pd.DataFrame) -> Table:
    """The rows of `estimate` as a table."""
    columns = {name: estimates[name].tolist() for name in ("model", "batch × length", "method")}
    columns |= {name: [f"{count:,}" for count in estimates[name]] for name in ("parameters", "trained")}
    for name in ("weights", "gradients", "moments", "activations", "estimate", "saved", "by the formula",
                 "saved by the formula"):  # fmt: skip
        heading, times, digits = (f"% {name}", 100, 1) if name.startswith("saved") else (f"{name}, MiB", 2**-20, 0)
        columns[heading] = [figure_text(times * value, digits) for value in estimates[name]]
    return Table.of(columns, "Memory of tuning")


_KINDS: dict[str, tuple[type[Any], Callable[[Any, Mapping[str, Any]], Section]]] = {
    "summary": (TunedEntry, _tuned),
    "parameters": (TunedEntry, _tuned),
    "modules": (TunedEntry, _tuned),
    "formula": (ModelEntry, _formula),
    "differences": (ModelEntry, _differences),
    "equations": (EquationsEntry, _equations),
    "memory": (MemoryEntry, memory_section),
}
