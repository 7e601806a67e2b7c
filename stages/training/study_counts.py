"""Figures of a study that no run is needed for: parameters at full size, formulas, and the published memory."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from stages.harness.plugins import plugin_names
from stages.harness.settings import PARAMS, read_params
from stages.nets.closed_form import closed_form
from stages.nets.counts import count_parameters, sums
from stages.nets.presets import HEADS, find_model, preset_names
from stages.training.methods import METHODS, read_method
from stages.training.published import UNIT, example_memory

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
    """The labels of params.yaml's methods and the files of stages/tuning, which need no settings."""
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
