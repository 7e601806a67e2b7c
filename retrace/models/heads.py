"""Models with a head: with random weights from a config, or read from a folder.

Reading checks that all weights of the body are in the file: transformers would leave missing ones random, and the
result would only look like a weak model.
"""

import re
from collections.abc import Sequence
from pathlib import Path
from types import ModuleType
from typing import Any, Literal

import torch
import transformers
from torch import Tensor, nn
from transformers import AttentionInterface, AttentionMaskInterface, AutoConfig, PreTrainedConfig, PreTrainedModel
from transformers.utils import logging

from retrace.core.errors import InputError, one_line
from retrace.core.files import read_object, require_file
from retrace.core.settings import load_plugin, plugin_file
from retrace.core.weights import weight_files
from retrace.models.attention import lean_attention, lean_mask, sdpa_mask
from retrace.models.dropout import quicken_dropout
from retrace.models.settings import FAMILIES, ModelSettings, check_family, check_pairs
from retrace.tokens.tokenizer import Vocabulary

Head = Literal["language_model", "pairs", "classifier", "spans"]

# transformers warns about new head weights, which are checked below, and shows its own progress bars.
logging.set_verbosity_error()
logging.disable_progress_bar()

AttentionInterface.register("lean", lean_attention)
AttentionMaskInterface.register("lean", lean_mask)
AttentionMaskInterface.register("sdpa", sdpa_mask)

AUTO_CLASSES = {
    "pairs": transformers.AutoModelForPreTraining,
    "classifier": transformers.AutoModelForSequenceClassification,
    "spans": transformers.AutoModelForQuestionAnswering,
    "masked": transformers.AutoModelForMaskedLM,
    "causal": transformers.AutoModelForCausalLM,
}
_LAYER = re.compile(r"^.*\.layers?\.\d+\.")


def make_config(family: str, settings: ModelSettings, vocabulary: Vocabulary) -> PreTrainedConfig:
    """The transformers config of a family (a file of retrace/families) with these sizes.

    Raises InputError if the family does not have one of the settings.
    """
    check_family(family, settings)
    return _load_family(family).make_config(settings, vocabulary)


def read_config(folder: Path) -> PreTrainedConfig:
    """The config of the model saved in `folder`, without references to code that came with it, which is never run.

    Raises InputError if there is none, or transformers does not know its architecture.
    """
    path = folder / "config.json"
    require_file(path)
    read_object(path)  # its errors are clearer than those of transformers
    try:
        config = AutoConfig.from_pretrained(folder, local_files_only=True, trust_remote_code=False)
    except Exception as error:  # of any kind, depending on the key
        raise InputError(f"{path}: no model can be made of it: {one_line(error)}") from None
    vars(config).pop("auto_map", None)  # else a published model would name it too
    return config


def make_model(
    head: Head, config: PreTrainedConfig, seed: int, attention: str, classes: Sequence[str] = ()
) -> PreTrainedModel:
    """A float32 model with random weights from `seed`; `classes` are the names of a classifier's classes.

    Raises InputError if the family's file names matrices that the model's layers do not have.
    """
    _set_classes(config, head, classes)
    torch.manual_seed(seed)
    model = _class(head, config).from_config(config, attn_implementation=attention, dtype=torch.float32)
    _require_matrices(model)
    quicken_dropout(model)
    if head == "classifier":
        _draw_classifier(model)
    return model


def read_model(
    head: Head, folder: Path, seed: int, attention: str, classes: Sequence[str] = (), needs_head: bool = False
) -> PreTrainedModel:
    """The model saved in `folder`, with a head drawn from `seed` if the saved weights have none of this size.

    `classes` are the names of a classifier's classes. Raises InputError if weights of the body are missing, or if
    the model `needs_head` and the saved one is missing or has another size, or as `make_model` does.
    """
    for name in weight_files(folder):
        require_file(folder / name)
    config = read_config(folder)
    _set_classes(config, head, classes)
    torch.manual_seed(seed)
    model, report = _class(head, config).from_pretrained(
        folder,
        config=config,
        key_mapping=getattr(family_of(config), "KEY_MAPPING", {}).get(head),
        attn_implementation=attention,
        dtype=torch.float32,
        local_files_only=True,
        trust_remote_code=False,
        use_safetensors=True,
        ignore_mismatched_sizes=True,  # a published model may have the classifier of another task
        output_loading_info=True,
    )
    other_size = sorted(key for key, *_ in report["mismatched_keys"] if needs_head or in_body(model, key))
    if other_size:
        raise InputError(f"{folder}: {other_size[0]} does not have the size in config.json")
    missing = sorted(key for key in report["missing_keys"] if needs_head or in_body(model, key))
    if missing:
        whose = "model's body" if in_body(model, missing[0]) else "model's head"
        raise InputError(f"{folder}: weights of the {whose} are missing: {missing[0]} ({len(missing)} in all)")
    _require_matrices(model)
    quicken_dropout(model)
    new = {*report["missing_keys"], *(key for key, *_ in report["mismatched_keys"])}
    if head == "classifier" and any(key.startswith("classifier.") for key in new):
        _draw_classifier(model)
    # Weights in a memory-mapped file may be unaligned, and alignment decides how products are rounded.
    for weight in model.parameters():
        weight.data = weight.data.clone()
    return model


def in_body(model: PreTrainedModel, name: str) -> bool:
    """Whether a weight belongs to the pretrained body rather than to the head.

    BERT's pooler counts as head, although its name is one of the body's: language models have none.
    """
    return name.startswith(f"{model.base_model_prefix}.") and ".pooler." not in name


def text_vector(config: PreTrainedConfig, hidden: Tensor, ids: Tensor, mask: Tensor | None) -> Tensor:
    """Hidden states (B, T, C), ids and attention mask (B, T) → the input of transformers' classifier, (B, C).

    For a causal model this is the vector of the last token before padding; otherwise the mean over tokens, if the
    config says so, or the vector of the first token.
    """
    if objective_of(config) == "causal":
        places = torch.arange(ids.shape[1], device=ids.device)
        last = (places * (ids != config.pad_token_id)).argmax(1)
        return hidden[torch.arange(len(ids), device=ids.device), last]
    if getattr(config, "classifier_pooling", "cls") == "mean":
        mask = torch.ones_like(ids) if mask is None else mask
        return (hidden * mask[..., None]).sum(1) / mask.sum(1, keepdim=True)
    return hidden[:, 0]


def set_dropout(model: PreTrainedModel, rate: float, key: str = "dropout") -> None:
    """Set the rate of all dropout layers, which in BERT and RoBERTa include those of attention weights.

    A ModernBERT that was made without dropout has no dropout layer after attention, so there is none to set. Raises
    InputError, naming the `key` of the rate in params.yaml, if the model has no dropout layer at all.
    """
    layers = [module for module in model.modules() if isinstance(module, nn.Dropout)]
    if not layers:
        said = f"{rate} is not allowed with family: {model.config.model_type}, which has no dropout layer"
        raise InputError(f"params.yaml: {key}: {said}")
    for layer in layers:
        layer.p = rate


def pretraining_head(config: PreTrainedConfig) -> Head:
    """The head that published models were pretrained with: for pairs if the family has one."""
    return "pairs" if hasattr(family_of(config), "PAIRS_ONLY") else "language_model"


def family_of(config: PreTrainedConfig) -> ModuleType:
    """The file of retrace/families for a config."""
    return _load_family(config.model_type)


def objective_of(config: PreTrainedConfig) -> Literal["masked", "causal"]:
    """Whether language models of this config are masked or causal."""
    return family_of(config).OBJECTIVE


def longest_input(config: PreTrainedConfig) -> int:
    """The most tokens that a model of this config accepts: its positions, unless the family says otherwise."""
    family = family_of(config)
    return family.longest_input(config) if hasattr(family, "longest_input") else config.max_position_embeddings


def check_length(name: str, length: int | None, config: PreTrainedConfig, folder: Path | None = None) -> None:
    """Raise InputError if a length in tokens is more than a model of this config accepts.

    `name` is that of the setting or option, and `folder` the model's, if it has one.
    """
    longest = longest_input(config)
    if length is not None and length > longest:
        model = "the model" if folder is None else f"the model in {folder}"
        raise InputError(f"{name}: {length} is not allowed; {model} reads at most {longest} tokens")


def layer_matrices(model: PreTrainedModel, part: Literal["ATTENTION", "OUTPUTS"]) -> list[str]:
    """The names of all attention matrices, or of the output matrices of attention and feed-forward parts."""
    names = getattr(family_of(model.config), part)
    return [name for name, _ in model.named_modules() if _LAYER.sub("", name) in names]


def token_embeddings(model: PreTrainedModel) -> str:
    """The name of the token embeddings."""
    table = model.get_input_embeddings()
    return next(name for name, module in model.named_modules() if module is table)


def takes_segments(config: PreTrainedConfig) -> bool:
    """Whether the model has segment ids, which tell the first text from the second."""
    return getattr(config, "type_vocab_size", 0) > 1


def _load_family(name: str) -> ModuleType:
    return load_plugin(FAMILIES, name, ("OBJECTIVE", "ATTENTION", "OUTPUTS", "make_config"), "family")


def _set_classes(config: PreTrainedConfig, head: Head, classes: Sequence[str]) -> None:
    """Name a classifier's classes; spans have two, start and end, whatever classes a checkpoint was tuned on."""
    if classes:
        config.id2label = dict(enumerate(classes))  # also sets the number of classes
        config.label2id = {name: number for number, name in enumerate(classes)}
        config.problem_type = None  # of a checkpoint's earlier task: transformers' pipeline might not take a softmax
    elif head == "spans":
        config.num_labels = 2


def _require_matrices(model: PreTrainedModel) -> None:
    """Raise InputError if `ATTENTION` or `OUTPUTS` has a name that is no matrix of a layer: methods would ignore it."""
    family, kind = family_of(model.config), model.config.model_type
    inner = [name for name, module in model.named_modules() if isinstance(module, nn.Linear) and _LAYER.match(name)]
    found = sorted({_LAYER.sub("", name) for name in inner})
    allowed = f"one of {', '.join(found)}" if found else "none, as it has no nn.Linear in a list called layer or layers"
    for part in ("ATTENTION", "OUTPUTS"):
        for name in getattr(family, part):
            if name not in found:
                said = f"{part}: {name!r} is not allowed; expected {allowed}"
                raise InputError(f"{plugin_file(FAMILIES, kind)}: {said}")


def _draw_classifier(model: PreTrainedModel) -> None:
    """Redraw the weights of a new classifier if its family has its own standard deviation for them."""
    std = getattr(family_of(model.config), "CLASSIFIER_STD", None)
    if std is not None:
        nn.init.normal_(model.get_parameter("classifier.weight"), std=std)


def _class(head: Head, config: PreTrainedConfig) -> Any:
    """The transformers class of a head; raises InputError if the family has no such head."""
    if head == "pairs":
        check_pairs(config.model_type)
    return AUTO_CLASSES[objective_of(config) if head == "language_model" else head]
