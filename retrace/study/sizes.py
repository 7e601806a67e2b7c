"""Figures of a study that no run is needed for: parameters at full size, formulas, and the published memory.

The memory analysis of a published study of parameter-efficient tuning, and an estimate beside it.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

from transformers import PreTrainedConfig, RobertaConfig

from retrace.core.registry import plugin_names
from retrace.core.settings import PARAMS, read_params, require
from retrace.estimates import published_memory as published
from retrace.estimates.architectures import HEADS, find_model, preset_names
from retrace.estimates.formulas import closed_form
from retrace.estimates.memory import Load, Needs, tuning_needs
from retrace.estimates.parameters import count_parameters, sums
from retrace.estimates.published_memory import UNIT, example_memory
from retrace.finetuning.method import METHODS, read_method
from retrace.models.heads import longest_input
from retrace.study.sizes_page import Coefficients, Estimate, KeptFacts, MemoryFacts
from retrace.training.settings import OptimiserSettings

NO_HEAD = "none"


def counted(address: Sequence[str], params: Mapping[str, Any] | None = None) -> float:
    """The figure at an address that is split at its dots, those of a model's name too.

    - parameters.<model>.<head>.<method>.<figure>: of a preset at full size, exact; a classifier has two classes. The
      method is set as `methods` of params.yaml has it, which is read where `params` is None. Figures: those of `sums`.
    - formula.<model>.<total or term>: by the formula of the preset's architecture, or one of its terms, such as
      attention or feed-forward.
    - memory.<full|adapter>.<constant|per_token|per_token_pair>: of the published study's example, in 10⁶ bytes.

    Raises LookupError, which says what there is, where the address leads nowhere.
    """
    kind, *rest = address or [""]
    if params is None:
        params = read_params() if PARAMS.is_file() else {}
    return _KINDS[_known("figure", kind, _KINDS)](rest, params)


def method_names(params: Mapping[str, Any]) -> list[str]:
    """The labels of params.yaml's methods and the files of retrace/methods, which need no settings."""
    return sorted({*plugin_names(METHODS), *params.get("methods", {})})


def _parameters(address: Sequence[str], params: Mapping[str, Any]) -> float:
    if len(address) < 4:
        raise LookupError("expected parameters.<model>.<head>.<method>.<figure>")
    *model, head, method, figure = address
    config = find_model(_known("model", ".".join(model), preset_names())).config
    chosen = HEADS.get(_known("head", head, [NO_HEAD, *HEADS]))
    how = read_method(params, _known("method", method, method_names(params)))
    found = sums(count_parameters(chosen, config, how.tune)[1])
    return found[_known("figure", figure, found)]


def _formula(address: Sequence[str], params: Mapping[str, Any]) -> float:
    if len(address) < 2:
        raise LookupError("expected formula.<model>.<total or term>")
    *model, figure = address
    form = closed_form(find_model(_known("model", ".".join(model), preset_names())).config, ())
    if form is None:
        raise LookupError(f"no formula is known for the family of {'.'.join(model)}")
    found = {"total": form.total} | {term.name: term.count for term in form.terms}
    return found[_known("figure", figure, found)]


def _memory(address: Sequence[str], params: Mapping[str, Any]) -> float:
    if len(address) != 2:
        raise LookupError("expected memory.<method>.<figure>")
    method, figure = address
    of_example = example_memory()
    found = vars(of_example[_known("method", method, of_example)])
    return found[_known("figure", figure, found)] / UNIT


_KINDS: dict[str, Callable[[Sequence[str], Mapping[str, Any]], float]] = {
    "parameters": _parameters,
    "formula": _formula,
    "memory": _memory,
}


def _known(what: str, name: str, there: Iterable[str]) -> str:
    """The name, or LookupError where it is not one of those that are there."""
    if name not in there:
        raise LookupError(f"{name!r} is no {what}; there is: {', '.join(there)}")
    return name


ASSUMED = (
    "The estimates run the real model with a classifier on tensors without values and count what is alive at once: "
    "an update in float32 with AdamW and attention that keeps its weights, as the study has it."
)
LOADS = ((1, 1), (32, 128), (32, 512))  # batch and length at which the example's formulas are compared
EXAMPLE_LENGTH = 128  # tokens; the example is estimated with as many examples as the model


@dataclass(frozen=True)
class MemoryEntry:
    """A section about the study's formulas, and what is estimated beside them."""

    kind: Literal["memory"]
    model: str = "roberta-base"  # a preset
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


def memory_facts(entry: MemoryEntry, params: Mapping[str, Any]) -> MemoryFacts:
    """Formulas, the example's figures and the estimates; the methods are those of `params`, of params.yaml."""
    exact = published.parameters(published.EXAMPLE, published.EXAMPLE_VOCABULARY)
    rounded = published.EXAMPLE_PARAMETERS
    config = find_model(entry.model).config
    estimates = [each for length in entry.lengths for each in _estimates(entry, config, entry.model, length, params)]
    if entry.example:
        both = replace(entry, methods=("full", "adapter"))
        estimates += _estimates(both, _example_config(), "the study's example", EXAMPLE_LENGTH, {})
    return MemoryFacts(
        formulas={
            "tuning every weight, bytes": published.FULL,
            "tuning adapters, bytes": published.ADAPTER,
            "N, parameters": published.PARAMETERS,
            "N_ad, parameters of adapters": published.ADAPTER_PARAMETERS,
        },
        equations=_kept(),
        printed=published.EXAMPLE_PRINTED,
        example=[
            *_coefficients("10⁶ bytes, N as printed", rounded, published.UNIT),
            *_coefficients("MiB, N as printed", rounded, 2**20),
            *_coefficients("MiB, N by its formula", exact, 2**20),
        ],
        sizes=_sizes(exact),
        example_saved={f"{batch} × {length}": _saved_by_formula(batch, length) for batch, length in LOADS},
        questionable=published.QUESTIONABLE,
        claim=published.CLAIM,
        estimates=estimates,
        assumed=ASSUMED,
    )


def _coefficients(what: str, parameters: int, unit: int) -> list[Coefficients]:
    return [
        Coefficients(f"{method}, {what}", *(count / unit for count in (of.constant, of.per_token, of.per_token_pair)))
        for method, of in published.example_memory(parameters).items()
    ]


def _kept() -> list[KeptFacts]:
    """What the equations keep, and what that is together."""
    shape, rows = published.EXAMPLE, []
    total = [sum(getattr(each, size) for each in published.EQUATIONS) for size in ("hidden", "pairs", "inner")]
    for each in (*published.EQUATIONS, published.Equation(0, "", "", *total)):
        terms = {"blh": each.hidden, "bal²": each.pairs, "blh′": each.inner}
        per_token = shape.layers * (each.hidden * shape.hidden + each.inner * shape.inner) / published.UNIT
        per_token_pair = shape.layers * each.pairs * shape.heads / published.UNIT
        formula = " + ".join(f"{times}{of}" for of, times in terms.items() if times)
        rows.append(KeptFacts(each.number, each.text, each.kept, formula, per_token, per_token_pair))
    return rows


def _sizes(exact: int) -> str:
    shape = published.EXAMPLE
    return (
        f"The example: v = {published.EXAMPLE_VOCABULARY:,}, h = {shape.hidden:,}, h′ = {shape.inner:,}, "
        f"d = {shape.layers}, a = {shape.heads}, h_ad = {published.EXAMPLE_WIDTH}; "
        f"N = {published.EXAMPLE_PARAMETERS:,} as printed, {exact:,} by its formula."
    )


def _saved_by_formula(batch: int, length: int) -> float:
    full, adapter = (of.at(batch, length) for of in published.example_memory().values())
    return 1 - adapter / full


def _example_config() -> PreTrainedConfig:
    """The study's example as RoBERTa, which is what it tunes."""
    shape = published.EXAMPLE
    return RobertaConfig(
        vocab_size=published.EXAMPLE_VOCABULARY,
        hidden_size=shape.hidden,
        intermediate_size=shape.inner,
        num_hidden_layers=shape.layers,
        num_attention_heads=shape.heads,
    )


def _estimates(
    entry: MemoryEntry, config: PreTrainedConfig, name: str, length: int, params: Mapping[str, Any]
) -> list[Estimate]:
    """Of every method; what the first takes is the measure of the others."""
    load = Load(entry.batch, length, 0, bf16=False, attention="eager")
    found: list[Estimate] = []
    for label in entry.methods:
        method = read_method(params, label)
        needs = tuning_needs(HEADS["classification"], config, method.tune, load, OptimiserSettings(kind="adamw"))
        formula = published.formula_memory(method, config, needs)
        by_formula = formula and formula[1].at(entry.batch, length)
        first = found[0] if found else None
        found.append(
            Estimate(
                model=name,
                load=f"{entry.batch} × {length}",
                method=label,
                parameters=needs.parameters,
                trained=needs.trained,
                parts=_parts(needs),
                saved=first and 1 - needs.peak / first.whole,
                by_formula=by_formula,
                saved_by_formula=1 - by_formula / first.by_formula
                if first and first.by_formula and by_formula
                else None,
            )
        )
    return found


def _parts(needs: Needs) -> dict[str, int]:
    return {
        "weights": needs.weights,
        "gradients": needs.gradients,
        "moments": needs.moments,
        "activations": needs.passing,
    }
