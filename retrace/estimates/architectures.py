"""Models by name, and how many parameters they have: counted on the meta device, which allocates none, and by formula.

A name is a preset of the folder beside, a folder with a config, or none for the model of params.yaml. The formulas are
those that the papers of four architectures imply, for the body without a head; `ClosedForm.symbols` says what their
letters stand for.
"""

import json
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, cast

import pandas as pd
import torch
from transformers import AutoConfig, PreTrainedConfig, PreTrainedModel

from retrace.core.errors import InputError
from retrace.core.settings import build, plugin_names
from retrace.core.weights import module_of
from retrace.models.heads import FAMILIES, Head, make_config, make_model, pretraining_head, read_config
from retrace.models.settings import ModelSettings
from retrace.tokens.settings import SPECIAL, TokenizerSettings
from retrace.tokens.tokenizer import Vocabulary

FOLDER = Path(__file__).with_suffix("")
HEADS: dict[str, Head] = {"classification": "classifier", "qa": "spans", "lm": "language_model"}  # as commands say it
Grouping = Literal["parameter", "module", "layer"]


@dataclass(frozen=True)
class Published:
    """How many parameters somebody wrote that a model has, and what makes up the difference to what it has."""

    source: str
    total: int
    differences: dict[str, int]  # they add up to the model's own count less `total`


@dataclass(frozen=True)
class NamedModel:
    """A model's config, and what was published of it where it is a preset."""

    name: str
    config: PreTrainedConfig
    published: tuple[Published, ...] = ()


def preset_names() -> list[str]:
    """The presets, sorted."""
    return sorted(path.stem for path in FOLDER.glob("*.json"))


def find_model(name: str) -> NamedModel:
    """The preset of that name, or the model saved in that folder.

    Raises InputError where there is none, or its family is not one of retrace/families.
    """
    if name in preset_names():
        preset = json.loads((FOLDER / f"{name}.json").read_text(encoding="utf-8"))
        published = tuple(Published(**entry) for entry in preset["published"])
        return NamedModel(name, AutoConfig.for_model(**preset["config"]), published)
    if not Path(name).is_dir():
        raise InputError(f"{name}: neither a folder nor one of the presets {', '.join(preset_names())}")
    return NamedModel(name, _read(Path(name)))


def described(params: Mapping[str, Any]) -> PreTrainedConfig:
    """The config of the model that params.yaml describes, with a vocabulary as large and numbered as it asks for."""
    tokens = build(TokenizerSettings, params, "tokenizer")
    pad, unknown, begin, end, mask = (tokens.special_tokens.index(token) for token in SPECIAL["bert"])
    vocabulary = Vocabulary(tokens.vocab_size, pad, unknown, begin, end, mask)
    return make_config(build(str, params, "family"), build(ModelSettings, params, "model"), vocabulary)


def _read(folder: Path) -> PreTrainedConfig:
    try:
        config = read_config(folder)
    except (OSError, ValueError, KeyError) as error:
        raise InputError(f"{folder}/config.json: {str(error).splitlines()[0]}") from None
    families = plugin_names(FAMILIES)
    if config.model_type not in families:
        raise InputError(
            f"{folder}/config.json: model_type: {config.model_type!r} is not allowed; "
            f"expected one of {', '.join(families)}"
        )
    return config


@dataclass(frozen=True)
class Count:
    """A parameter of a model; tied weights count once."""

    name: str
    size: int  # how many numbers it holds
    is_trained: bool
    is_added: bool  # by the fine-tuning method
    is_head: bool  # outside the pretrained body


def empty_model(head: Head | None, config: PreTrainedConfig, attention: str = "eager") -> PreTrainedModel:
    """A model whose weights have shapes and no values (torch's meta device).

    Without a head it is the one with the family's pretraining head: its body is then what was pretrained. BERT's has a
    pooler, as it was pretrained on pairs of sentences; RoBERTa's has none.
    """
    with torch.device("meta"):
        return make_model(head or pretraining_head(config), config, 0, attention)


def count_parameters(
    head: Head | None, config: PreTrainedConfig, tune: Callable[[PreTrainedModel, Head], object] | None = None
) -> tuple[PreTrainedModel, list[Count]]:
    """The model after a method's `tune`, on the meta device, and its parameters; those of the body without a head."""
    model = empty_model(head, config)
    original = {id(weight) for weight in model.parameters()}
    if tune is not None:
        with torch.device("meta"):
            tune(model, head or "language_model")
    body = cast(PreTrainedModel, model.base_model)
    pretrained = {id(weight) for weight in body.parameters()}
    shown = body if head is None else model
    return shown, [
        Count(name, weight.numel(), weight.requires_grad, id(weight) not in original, id(weight) not in pretrained)
        for name, weight in shown.named_parameters()
    ]


def total(counts: Iterable[Count]) -> int:
    """The sum of their sizes."""
    return sum(count.size for count in counts)


def sums(counts: Iterable[Count]) -> dict[str, int]:
    """Parameters in total, trained, frozen, added by the method, and of the head; BERT's pooler is not of the head."""
    counts = list(counts)
    trainable = total(count for count in counts if count.is_trained)
    biases = total(count for count in counts if count.is_head and count.name.endswith("bias"))
    return {
        "total": total(counts),
        "trainable": trainable,
        "frozen": total(counts) - trainable,
        "added": total(count for count in counts if count.is_added),
        "head_weights": total(count for count in counts if count.is_head) - biases,
        "head_biases": biases,
    }


def rows(counts: Iterable[Count], by: Grouping) -> list[tuple[str, int, int]]:
    """Name, size and trained size of each parameter, module (a matrix with its bias) or layer."""
    found: dict[str, tuple[int, int]] = {}
    for count in counts:
        name = module_of(count.name) if by == "layer" else count.name
        if by == "module":
            name = name.rpartition(".")[0] or name
        size, trained = found.get(name, (0, 0))
        found[name] = size + count.size, trained + count.size * count.is_trained
    return [(name, *sizes) for name, sizes in found.items()]


@dataclass(frozen=True)
class Term:
    """A part of a formula."""

    name: str
    formula: str
    count: int
    weights: str  # a pattern that finds the names of the parameters it counts


@dataclass(frozen=True)
class ClosedForm:
    """The count by a family's formula, for the body without a head, and where a model has other parameters."""

    symbols: str  # what the letters of the formulas are
    terms: tuple[Term, ...]
    differences: dict[str, int]  # by part: what the model has more, or less where negative

    @property
    def total(self) -> int:
        """Parameters by the formula."""
        return sum(term.count for term in self.terms)


BERT = {  # Devlin et al. 2018: biases everywhere, two norms a layer, a pooler for pairs of sentences
    "word embeddings": ("Vh", r"embeddings\.word_embeddings"),
    "position embeddings": ("Ph", r"embeddings\.position_embeddings"),
    "segment embeddings": ("Sh", r"embeddings\.token_type_embeddings"),
    "norm of the embeddings": ("2h", r"embeddings\.LayerNorm"),
    "attention": ("L(4h² + 4h)", r"attention\.(self|output\.dense)"),
    "feed-forward": ("L(2hf + f + h)", r"layer\.\d+\.(intermediate|output)\.dense"),
    "norms of the layers": ("4Lh", r"layer\..*LayerNorm"),
    "pooler": ("h² + h", r"pooler"),
}
# Liu et al. 2019: BERT's without segments and pooler; two of the positions are for padding.
ROBERTA = {name: term for name, term in BERT.items() if name not in ("segment embeddings", "pooler")}
MODERNBERT = {  # Warner et al. 2024: no biases, gated feed-forward, one norm fewer in layer 0
    "word embeddings": ("Vh", r"embeddings\.tok_embeddings"),
    "norm of the embeddings": ("h", r"embeddings\.norm"),
    "attention": ("4Lh²", r"attn\.W(qkv|o)"),
    "feed-forward": ("3Lhf", r"mlp\.W[io]"),
    "norms of the layers": ("(2L - 1)h", r"(attn|mlp)_norm"),
    "last norm": ("h", r"final_norm"),
}
LLAMA = {  # Touvron et al. 2023: no biases, three feed-forward matrices, keys and values of fewer heads
    "word embeddings": ("Vh", r"embed_tokens"),
    "attention": ("L(2had + 2hkd)", r"self_attn\.._proj\."),
    "feed-forward": ("3Lhf", r"mlp\.(gate|up|down)_proj"),
    "norms of the layers": ("2Lh", r"(input|post_attention)_layernorm"),
    "last norm": ("h", r"\bnorm\."),
}
LAYERS = "L layers of size h and inner size f"
FORMULAS = {  # of a family: what the letters are, and of each part its formula and the names of its parameters
    "bert": (f"V tokens, P positions, S segments, {LAYERS}.", BERT),
    "llama": (f"V tokens, {LAYERS}, a and k heads of size d for queries and for keys and values.", LLAMA),
    "modernbert": (f"V tokens, {LAYERS}.", MODERNBERT),
    "roberta": (f"V tokens, P positions, {LAYERS}.", ROBERTA),
}
LETTERS = {
    "V": "vocab_size", "P": "max_position_embeddings", "S": "type_vocab_size", "L": "num_hidden_layers",
    "h": "hidden_size", "f": "intermediate_size", "a": "num_attention_heads", "k": "num_key_value_heads",
}  # fmt: skip


def evaluate(formula: str, config: PreTrainedConfig) -> int:
    """The value of a formula such as L(4h² + 4h); `LETTERS` are sizes of the config, and d is that of a head."""
    sizes = {letter: getattr(config, name, None) for letter, name in LETTERS.items()}
    sizes["d"] = getattr(config, "head_dim", None) or config.hidden_size // config.num_attention_heads
    factors = re.sub(r"(?<=[\w²)])(?=[A-Za-z(])", "*", formula).replace("²", "**2")  # L*(4*h**2+4*h)
    return int(pd.eval(factors, local_dict=sizes, engine="python"))


def closed_form(config: PreTrainedConfig, counts: Iterable[Count] = ()) -> ClosedForm | None:
    """The formula of the config's family beside a model's parameters; None where the family has no formula.

    What a fine-tuning method added belongs to no term, whatever it is called.
    """
    if config.model_type not in FORMULAS:
        return None
    symbols, parts = FORMULAS[config.model_type]
    terms = tuple(Term(name, formula, evaluate(formula, config), of) for name, (formula, of) in parts.items())
    differences = {term.name: -term.count for term in terms}
    for count in counts:
        part = next((term.name for term in terms if re.search(term.weights, count.name)), None)
        if part is None or count.is_added:  # of all layers together, such as layer.*.output.dense.adapter.up
            part = re.sub(r"\.\d+\.", ".*.", count.name.rpartition(".")[0] or count.name)
        differences[part] = differences.get(part, 0) + count.size
    return ClosedForm(symbols, terms, {part: more for part, more in differences.items() if more})
