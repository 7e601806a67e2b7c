"""What the formula of an architecture says of its parameters, set against those that a model has."""

import re
from collections.abc import Iterable
from dataclasses import dataclass

from transformers import PreTrainedConfig

from retrace.core.registry import load_plugin, plugin_names
from retrace.estimates.parameters import Count

FORMS = "retrace.estimates.formulas"


@dataclass(frozen=True)
class Term:
    """A part of the formula."""

    name: str
    formula: str
    count: int
    weights: str  # a pattern that finds the names of the parameters it speaks of


@dataclass(frozen=True)
class ClosedForm:
    """The count by a family's formula, for the body without a head, and where a model has other parameters."""

    terms: tuple[Term, ...]
    differences: dict[str, int]  # by part: what the model has more, or less where negative

    @property
    def total(self) -> int:
        """Parameters by the formula."""
        return sum(term.count for term in self.terms)


def closed_form(config: PreTrainedConfig, counts: Iterable[Count]) -> ClosedForm | None:
    """The formula of the config's family beside a model's parameters; None where the family has no formula.

    What a tuning method added belongs to no term, whatever it is called.
    """
    if config.model_type not in plugin_names(FORMS):
        return None
    terms = load_plugin(FORMS, config.model_type, "family").terms(config)
    differences = {term.name: -term.count for term in terms}
    for count in counts:
        found = next((term.name for term in terms if re.search(term.weights, count.name)), None)
        part = _part(count.name) if found is None or count.is_added else found
        differences[part] = differences.get(part, 0) + count.size
    return ClosedForm(tuple(terms), {part: more for part, more in differences.items() if more})


def _part(name: str) -> str:
    """layer.3.output.dense.adapter.up.weight → layer.*.output.dense.adapter.up: one part for all layers."""
    return re.sub(r"\.\d+\.", ".*.", name.rpartition(".")[0] or name)
