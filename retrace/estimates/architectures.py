"""Models by name, and their parameters: counted on the meta device, which allocates nothing, and by formula.

A name is one of architectures.json, or that of a folder with a config. The formulas follow from the papers of four
architectures and count the body without a head; `ClosedForm.symbols` says what their letters stand for.
"""

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, Literal, cast

import pandas as pd
import torch
from transformers import AutoConfig, PreTrainedConfig, PreTrainedModel

from retrace.core.errors import InputError
from retrace.core.files import read_json
from retrace.core.settings import build, plugin_names, require_one_of
from retrace.core.weights import module_of
from retrace.models.heads import FAMILIES, Head, make_config, make_model, pretraining_head, read_config
from retrace.models.settings import ModelSettings
from retrace.tokens.settings import SPECIAL, TokenizerSettings
from retrace.tokens.tokenizer import Vocabulary

FOLDER = Path(__file__).parent
HEADS: dict[str, Head] = {"classification": "classifier", "qa": "spans", "lm": "language_model"}  # by name in commands


@dataclass(frozen=True)
class PublishedCount:
    """A published number of parameters, and what makes up its difference from the model's own."""

    source: str
    total: int
    differences: dict[str, int]  # they add up to the model's own number less `total`


@dataclass(frozen=True)
class NamedModel:
    """A model's config, and the numbers of parameters that were published for an architecture."""

    name: str
    config: PreTrainedConfig
    published: tuple[PublishedCount, ...] = ()


def find_architecture(name: str) -> NamedModel:
    """The architecture of that name.

    Raises LookupError, which lists the names, if there is none.
    """
    if name not in (known := _architectures()):
        raise LookupError(f"model: {name!r} not found; expected one of {', '.join(sorted(known))}")
    published = tuple(PublishedCount(**entry) for entry in known[name]["published"])
    return NamedModel(name, AutoConfig.for_model(**known[name]["config"]), published)


def _architectures() -> dict[str, dict[str, Any]]:
    """`config` and `published` numbers of each architecture, by name."""
    return read_json(FOLDER / "architectures.json")


def find_model(name: str) -> NamedModel:
    """The architecture of that name, or the model saved in that folder.

    Raises InputError if there is none, or its family is not one of retrace/families.
    """
    if name in (known := _architectures()):
        return find_architecture(name)
    if not Path(name).is_dir():
        raise InputError(f"{name}: neither a folder nor one of the architectures {', '.join(sorted(known))}")
    config = read_config(Path(name))
    require_one_of(plugin_names(FAMILIES), config.model_type, "model_type", f"{name}/config.json")
    return NamedModel(name, config)


def described(params: Mapping[str, Any]) -> PreTrainedConfig:
    """The config of the model in params.yaml, with the size and the special tokens of the vocabulary it asks for."""
    tokens = build(TokenizerSettings, params, "tokenizer")
    pad, unknown, begin, end, mask = (tokens.special_tokens.index(token) for token in SPECIAL["bert"])
    vocabulary = Vocabulary(tokens.vocab_size, pad, unknown, begin, end, mask)
    return make_config(build(str, params, "family"), build(ModelSettings, params, "model"), vocabulary)


@dataclass(frozen=True)
class Parameter:
    """A parameter of a model; tied weights count once."""

    name: str
    size: int  # number of elements
    is_trained: bool
    is_added: bool  # by the fine-tuning method
    is_head: bool  # outside the pretrained body


def count_parameters(
    head: Head | None, config: PreTrainedConfig, tune: Callable[[PreTrainedModel, Head], object] | None = None
) -> tuple[PreTrainedModel, list[Parameter]]:
    """The model after a method's `tune`, on the meta device, and its parameters; without a head, those of its body.

    The body is then the pretrained one, from the model with the family's pretraining head: BERT's, pretrained on pairs
    of sentences, has a pooler, RoBERTa's has none.
    """
    with torch.device("meta"):  # where weights have shapes and no values
        model = make_model(head or pretraining_head(config), config, 0, "eager")
        original = {id(weight) for weight in model.parameters()}
        if tune is not None:
            tune(model, head or "language_model")
    body = cast(PreTrainedModel, model.base_model)
    pretrained = {id(weight) for weight in body.parameters()}
    shown = body if head is None else model
    return shown, [
        Parameter(name, weight.numel(), weight.requires_grad, id(weight) not in original, id(weight) not in pretrained)
        for name, weight in shown.named_parameters()
    ]


def sums(counts: Iterable[Parameter]) -> dict[str, int]:
    """Parameters in total, trained, frozen, added by the method, and in the head; BERT's pooler is not in the head."""
    found: dict[str, int] = dict.fromkeys(("total", "trainable", "frozen", "added", "head_weights", "head_biases"), 0)
    for count in counts:
        found["total"] += count.size
        found["trainable" if count.is_trained else "frozen"] += count.size
        if count.is_added:
            found["added"] += count.size
        if count.is_head:
            found["head_biases" if count.name.endswith("bias") else "head_weights"] += count.size
    return found


def rows(counts: Iterable[Parameter], by: Literal["parameter", "module", "layer"]) -> list[tuple[str, int, int]]:
    """Name, size and trained size of each parameter, module (a matrix with its bias) or layer."""
    found: dict[str, tuple[int, int]] = {}
    for count in counts:
        name = module_of(count.name) if by == "layer" else count.name
        if by == "module":
            name = name.rpartition(".")[0] or name
        size, trained = found.get(name, (0, 0))
        found[name] = size + count.size, trained + (count.size if count.is_trained else 0)
    return [(name, *sizes) for name, sizes in found.items()]


@dataclass(frozen=True)
class Term:
    """A part of a formula."""

    name: str
    formula: str
    count: int
    weights: str  # a regular expression for the names of the parameters that it counts


@dataclass(frozen=True)
class ClosedForm:
    """A family's formula for the body without a head, and how a model's parameters differ from it."""

    symbols: str  # what the letters stand for
    terms: tuple[Term, ...]
    differences: dict[str, int]  # by part: the model's number less the formula's

    @property
    def total(self) -> int:
        """Parameters by the formula."""
        return sum(term.count for term in self.terms)


@cache
def _closed_forms() -> dict[str, dict[str, Any]]:
    """`letters`, sizes in a config; by family the `symbols`, and the formula and weights of each of its `parts`."""
    return read_json(FOLDER / "closed_forms.json")


def evaluate(formula: str, config: PreTrainedConfig) -> int:
    """The value of a formula such as L(4h² + 4h); letters are sizes in the config, d is the size of a head."""
    sizes = {letter: getattr(config, name, None) for letter, name in _closed_forms()["letters"].items()}
    sizes["d"] = getattr(config, "head_dim", None) or config.hidden_size // config.num_attention_heads
    factors = re.sub(r"(?<=[\w²)])(?=[A-Za-z(])", "*", formula).replace("²", "**2")  # L*(4*h**2+4*h)
    return int(pd.eval(factors, local_dict=sizes, engine="python"))


def closed_form(config: PreTrainedConfig, counts: Iterable[Parameter] = ()) -> ClosedForm | None:
    """The formula of the config's family next to a model's parameters; None if the family has no formula.

    Parameters that a fine-tuning method added belong to no term, whatever their names.
    """
    family = _closed_forms()["families"].get(config.model_type)
    if family is None:
        return None
    terms = tuple(
        Term(name, part["formula"], evaluate(part["formula"], config), part["weights"])
        for name, part in family["parts"].items()
    )
    differences = {term.name: -term.count for term in terms}
    for count in counts:
        part = next((term.name for term in terms if re.search(term.weights, count.name)), None)
        if part is None or count.is_added:  # summed over layers, as layer.*.output.dense.adapter.up
            part = re.sub(r"\.\d+\.", ".*.", count.name.rpartition(".")[0] or count.name)
        differences[part] = differences.get(part, 0) + count.size
    return ClosedForm(family["symbols"], terms, {part: more for part, more in differences.items() if more})
