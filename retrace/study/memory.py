"""The memory analysis of a published study of parameter-efficient tuning: its formulas, its example, and an estimate
beside them that counts what is alive at once."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

from transformers import PreTrainedConfig

from retrace.core.settings import require
from retrace.estimates import published_memory as published
from retrace.estimates.architectures import HEADS, find_model, preset_names
from retrace.estimates.memory import Load, Needs, update_needs
from retrace.finetuning.method import read_method
from retrace.models.heads import longest_input
from retrace.report.blocks import NOTHING, Section, Table, figure_text
from retrace.training.settings import OptimizerSettings

TITLE = "Memory of tuning"
ASSUMED = (
    "The estimates run the real model with a classifier on tensors without values and count what is alive at once: "
    "an update in float32 with AdamW and attention that keeps its weights, as the study has it."
)
LOADS = ((1, 1), (32, 128), (32, 512))  # batch and length at which the example's formulas are compared
EXAMPLE_LENGTH = 128  # tokens; the example is estimated with as many examples as the model
FORMULAS = (
    ("tuning every weight, bytes", published.FULL),
    ("tuning adapters, bytes", published.ADAPTER),
    ("N, parameters", published.PARAMETERS),
    ("N_ad, parameters of adapters", published.ADAPTER_PARAMETERS),
)


@dataclass(frozen=True)
class MemoryEntry:
    """A section about the study's formulas, and what is estimated beside them."""

    kind: Literal["memory"]
    model: str = "roberta-base"  # of retrace/estimates/architectures
    batch: int = 32  # examples of an update
    lengths: tuple[int, ...] = (128, 512)  # tokens of an example
    methods: tuple[str, ...] = ("full", "adapter", "lora")  # what the others save is of what the first takes
    example: bool = True  # estimate the study's 3-billion example too, which takes seconds

    def __post_init__(self) -> None:
        require(self.model in preset_names(), "model", self.model, f"expected one of {', '.join(preset_names())}")
        longest = longest_input(find_model(self.model).config)
        require(self.batch > 0, "batch", self.batch, "expected a number above 0")
        for length in self.lengths:
            require(0 < length <= longest, "lengths", length, f"expected 1 to {longest} tokens")
        require(len(self.lengths) > 0, "lengths", [], "expected at least one")
        require(len(self.methods) > 1, "methods", list(self.methods), "expected two or more")


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

    def row(self) -> tuple[str, ...]:
        """The estimate's row in the table, its parts in MiB."""
        needs = self.needs
        parts = (needs.weights, needs.gradients, needs.moments, needs.passing, needs.peak)
        return (
            self.model, self.load, self.method, f"{needs.parameters:,}", f"{needs.trained:,}",
            *map(_mebibytes, parts), _percent(self.saved), _mebibytes(self.by_formula), _percent(self.saved_by_formula),
        )  # fmt: skip


ESTIMATED = (
    "model", "batch × length", "method", "parameters", "trained", "weights, MiB", "gradients, MiB", "moments, MiB",
    "activations, MiB", "estimate, MiB", "% saved", "by the formula, MiB", "% saved by the formula",
)  # fmt: skip


def memory_section(entry: MemoryEntry, params: Mapping[str, Any]) -> Section:
    """Formulas, example, what is questionable in them, and estimates by the methods of params.yaml."""
    exact, config = published.parameters(published.EXAMPLE), published.EXAMPLE
    sizes = (
        f"The example: v = {config.vocab_size:,}, h = {config.hidden_size:,}, h′ = {config.intermediate_size:,}, "
        f"d = {config.num_hidden_layers}, a = {config.num_attention_heads}, h_ad = {published.EXAMPLE_WIDTH}; "
        f"N = {published.EXAMPLE_PARAMETERS:,} as printed, {exact:,} by its formula."
    )
    saved = {f"{batch} × {length}": _saved_by_formula(batch, length) for batch, length in LOADS}
    estimates = memory_estimates(entry, params)
    return Section(TITLE, [
        Table(("of", "formula"), FORMULAS), sizes, _equations(),
        Table(("the example as printed", "MiB"), list(published.EXAMPLE_PRINTED.items())), _example(exact),
        Table(("batch × length", "% that adapters save in the example by the formulas"),
              [(load, _percent(share)) for load, share in saved.items()]),
        *published.QUESTIONABLE, ASSUMED, Table(ESTIMATED, [each.row() for each in estimates]),
        _claim("its own formulas in its example", list(saved.values())),
        _claim("the estimates", [each.saved for each in estimates if each.saved is not None]),
    ])  # fmt: skip


def memory_estimates(entry: MemoryEntry, params: Mapping[str, Any]) -> list[Estimate]:
    """Of every length and method of the entry, and of the study's example where that is wanted."""
    config = find_model(entry.model).config
    found = [each for length in entry.lengths for each in _estimates(entry, config, entry.model, length, params)]
    if entry.example:
        both = replace(entry, methods=("full", "adapter"))
        found += _estimates(both, published.EXAMPLE, "the study's example", EXAMPLE_LENGTH, {})
    return found


def _equations() -> Table:
    """What a layer's equations keep for the backward pass, and what that is together."""
    config, rows = published.EXAMPLE, []
    total = [sum(getattr(each, size) for each in published.EQUATIONS) for size in ("hidden", "pairs", "inner")]
    for each in (*published.EQUATIONS, published.Equation(0, "", "", *total)):
        terms = {"blh": each.hidden, "bal²": each.pairs, "blh′": each.inner}
        kept = each.hidden * config.hidden_size + each.inner * config.intermediate_size
        per_token = config.num_hidden_layers * kept / published.UNIT
        per_token_pair = config.num_hidden_layers * each.pairs * config.num_attention_heads / published.UNIT
        formula = " + ".join(f"{times}{of}" for of, times in terms.items() if times)
        number = f"({each.number})" if each.number else "together"
        rows.append((number, each.text, each.kept, formula, figure_text(per_token, 4), figure_text(per_token_pair, 4)))
    header = ("equation", "of a layer", "kept of it", "bytes a layer", "the example, 10⁶ bytes × bl", "× bl²")
    return Table(header, rows)


def _example(exact: int) -> Table:
    """The example's memory by the formulas, with its number of parameters as printed and as its formula has it."""
    rounded, rows = published.EXAMPLE_PARAMETERS, []
    for what, count, unit in (
        ("10⁶ bytes, N as printed", rounded, published.UNIT),
        ("MiB, N as printed", rounded, 2**20),
        ("MiB, N by its formula", exact, 2**20),
    ):
        for method, of in published.example_memory(count).items():
            pair, token = figure_text(of.per_token_pair / unit, 4), figure_text(of.per_token / unit)
            rows.append((f"{method}, {what}", f"{of.constant / unit:,.0f}", pair, token))
    return Table(("the example by the formulas", "constant", "× bl²", "× bl"), rows)


def _saved_by_formula(batch: int, length: int) -> float:
    full, adapter = (of.at(batch, length) for of in published.example_memory().values())
    return 1 - adapter / full


def _estimates(
    entry: MemoryEntry, config: PreTrainedConfig, name: str, length: int, params: Mapping[str, Any]
) -> list[Estimate]:
    """Of every method; what the others save is of what the first takes."""
    load = Load(entry.batch, length, 0, bf16=False, attention="eager")
    found: list[Estimate] = []
    for label in entry.methods:
        method = read_method(params, label)
        needs = update_needs(HEADS["classification"], config, load, OptimizerSettings(kind="adamw"), method.tune)
        formula = published.formula_memory(method, config, needs)
        by_formula = formula and formula[1].at(entry.batch, length)
        first = found[0] if found else None
        saved = first and 1 - needs.peak / first.needs.peak
        saved_by_formula = 1 - by_formula / first.by_formula if first and first.by_formula and by_formula else None
        found.append(Estimate(name, f"{entry.batch} × {length}", label, needs, by_formula, saved, saved_by_formula))
    return found


def _claim(by: str, shares: Sequence[float]) -> str:
    """How far the study's claim holds."""
    held = sum(share >= published.CLAIM for share in shares)
    span = f"{_percent(min(shares))}% to {_percent(max(shares))}%"
    said = f"that at least {100 * published.CLAIM:.0f}% is saved"
    return f"By {by}, {said} holds in {held} of {len(shares)} cases: {span} is saved."


def _mebibytes(count: int | None) -> str:
    return NOTHING if count is None else f"{count / 2**20:,.0f}"


def _percent(share: float | None) -> str:
    return NOTHING if share is None else f"{100 * share:.1f}"
