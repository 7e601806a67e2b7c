"""Sections of a study's page about parameters and memory, as its published.yaml lists them under `sections`."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from torchinfo import summary
from transformers import PreTrainedModel

from retrace.core.errors import InputError
from retrace.core.settings import build, require
from retrace.estimates.architectures import HEADS, find_model, preset_names
from retrace.estimates.formulas import closed_form
from retrace.estimates.parameters import Count, Grouping, count_parameters, rows, sums
from retrace.finetuning.method import read_method
from retrace.report.blocks import NOTHING, Section
from retrace.study.sizes import MemoryEntry, counted, memory_facts, method_names
from retrace.study.sizes_page import (
    differences_section,
    equations_section,
    formula_section,
    memory_section,
    rows_section,
    summary_section,
)  # fmt: skip

FILE = Path("published.yaml")
HeadName = Literal["none", "classification", "qa", "lm"]
HEAD_TITLES: dict[HeadName, str] = {
    "none": "", "classification": " with a classifier", "qa": " with a head for answers", "lm": " as a language model",
}  # fmt: skip


@dataclass(frozen=True)
class ModelEntry:
    """A section about a model as it was published."""

    kind: Literal["formula", "differences"]
    model: str  # a preset

    def __post_init__(self) -> None:
        require(self.model in preset_names(), "model", self.model, f"expected one of {', '.join(preset_names())}")
        require(
            self.kind != "differences" or bool(find_model(self.model).published),
            "model", self.model, "retrace/estimates/architectures has no published count of it",
        )  # fmt: skip


@dataclass(frozen=True)
class TunedEntry:
    """A section about a model under a head, as a method tunes it."""

    kind: Literal["parameters", "modules", "summary"]
    model: str  # a preset
    head: HeadName = "none"
    method: str = "full"
    part: str = ""  # a module, such as encoder.layer.0; the whole model where empty
    published: dict[str, int] = field(default_factory=dict)  # what was printed, by parameter or module

    def __post_init__(self) -> None:
        require(self.model in preset_names(), "model", self.model, f"expected one of {', '.join(preset_names())}")

    @property
    def title(self) -> str:
        """The model, its head and how it is tuned."""
        tuned = "" if self.method == "full" else f", tuned by {self.method}"
        return f"{self.model}{HEAD_TITLES[self.head]}{tuned}" + (f": {self.part}" if self.part else "")


@dataclass(frozen=True)
class SummaryEntry(TunedEntry):
    """torchinfo's summary of such a model."""

    depth: int = 3  # levels

    def __post_init__(self) -> None:
        super().__post_init__()
        require(self.depth > 0, "depth", self.depth, "expected a whole number above 0")


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


def study_sections(entries: Sequence[Mapping[str, Any]], params: Mapping[str, Any]) -> list[Section]:
    """A section for each entry; `params` is the study's params.yaml, whose methods count.

    Raises InputError, which names the entry and the key, where an entry is wrong.
    """
    return [_section(entry, f"sections[{place}]", params) for place, entry in enumerate(entries)]


def _section(values: Mapping[str, Any], key: str, params: Mapping[str, Any]) -> Section:
    kind = values.get("kind") if isinstance(values, Mapping) else None
    if kind not in _KINDS:
        raise InputError(f"{FILE}: {key}.kind: {kind!r} is not allowed; expected one of {', '.join(_KINDS)}")
    settings, make = _KINDS[kind]
    entry = build(settings, {key: values}, key, FILE)
    _check_methods(entry, key, params)
    return make(entry, params)


def _check_methods(entry: Any, key: str, params: Mapping[str, Any]) -> None:
    there = method_names(params)
    for method in getattr(entry, "methods", [getattr(entry, "method", "full")]):
        if method not in there:
            raise InputError(f"{FILE}: {key}: no method {method!r}; there is: {', '.join(there)}")


def _summary(entry: SummaryEntry, params: Mapping[str, Any]) -> Section:
    model, counts = _counted(entry, params)
    modules = dict(model.named_modules())
    if entry.part not in modules:
        raise InputError(f"{FILE}: sections: summary: part: {entry.part!r} is no module of {entry.model}")
    shown = summary(modules[entry.part], depth=entry.depth, verbose=0)
    found = sums(_of_part(entry, counts))
    return summary_section(f"Summary of {entry.title}", str(shown), shown.total_params, found, _printed(entry, counts))


def _rows(entry: TunedEntry, params: Mapping[str, Any]) -> Section:
    by: Grouping = "parameter" if entry.kind == "parameters" else "module"
    _, counts = _counted(entry, params)
    shown = _of_part(entry, counts)
    if not shown:
        raise InputError(f"{FILE}: sections: {entry.kind}: part: {entry.part!r} is no module of {entry.model}")
    title = f"Parameters of {entry.title}, by {by}"
    return rows_section(title, rows(shown, by), sums(shown), _printed(entry, counts))


def _of_part(entry: TunedEntry, counts: Sequence[Count]) -> list[Count]:
    """The counts of the part that is shown."""
    return [count for count in counts if not entry.part or count.name.startswith(f"{entry.part}.")]


def _equations(entry: EquationsEntry, params: Mapping[str, Any]) -> Section:
    lines = []
    for place, row in enumerate(entry.equations):
        try:
            found = [counted(address.split("."), params) for address in row.figures]
        except LookupError as error:
            raise InputError(f"{FILE}: sections: equations[{place}]: figures: {error.args[0]}") from None
        lines.append((row.number, row.equation, row.gives, f"{sum(found):,.0f}" if found else NOTHING))
    return equations_section(entry.title, entry.symbols, lines)


def _printed(entry: TunedEntry, counts: Sequence[Count]) -> list[tuple[str, int, int]]:
    """What was printed of a parameter or a module, and what there is."""
    found = []
    for name, printed in entry.published.items():
        sizes = [count.size for count in counts if count.name == name or count.name.startswith(f"{name}.")]
        if not sizes:
            raise InputError(f"{FILE}: sections: {entry.kind}: published: {entry.model} has no {name}")
        found.append((name, printed, sum(sizes)))
    return found


def _formula(entry: ModelEntry, params: Mapping[str, Any]) -> Section:
    config = find_model(entry.model).config
    _, counts = count_parameters(None, config, read_method({}, "full").tune)
    form = closed_form(config, counts)
    assert form is not None, f"every preset's family has a formula, but {config.model_type} has none"
    return formula_section(f"Parameters of {entry.model} by the formula", form.symbols, form)


def _differences(entry: ModelEntry, params: Mapping[str, Any]) -> Section:
    return differences_section(f"Published counts of {entry.model}", find_model(entry.model).published)


def _memory(entry: MemoryEntry, params: Mapping[str, Any]) -> Section:
    return memory_section(memory_facts(entry, params))


def _counted(entry: TunedEntry, params: Mapping[str, Any]) -> tuple[PreTrainedModel, list[Count]]:
    config = find_model(entry.model).config
    return count_parameters(HEADS.get(entry.head), config, read_method(params, entry.method).tune)


_KINDS: dict[str, tuple[type[Any], Callable[[Any, Mapping[str, Any]], Section]]] = {
    "summary": (SummaryEntry, _summary),
    "parameters": (TunedEntry, _rows),
    "modules": (TunedEntry, _rows),
    "formula": (ModelEntry, _formula),
    "differences": (ModelEntry, _differences),
    "equations": (EquationsEntry, _equations),
    "memory": (MemoryEntry, _memory),
}
