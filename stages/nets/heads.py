"""Models with a head: made anew from a config, or read from a folder of weights.

Reading checks that only head weights are new. A body that stayed random would be no error for
transformers, and its scores would look like those of a weak model.
"""

from pathlib import Path
from typing import Literal

import torch
from transformers import (
    AutoConfig,
    AutoModelForMaskedLM,
    AutoModelForQuestionAnswering,
    AutoModelForSequenceClassification,
    PreTrainedConfig,
    PreTrainedModel,
)
from transformers.utils import logging

from stages.harness.errors import InputError
from stages.harness.plugins import load_plugin
from stages.nets.settings import ModelSettings
from stages.nets.vocabulary import Vocabulary

Head = Literal["language_model", "classifier", "spans"]
FAMILIES = "stages.nets.families"

# transformers reports new head weights as a warning and draws bars of its own; what matters of that
# is checked below.
logging.set_verbosity_error()
logging.disable_progress_bar()

_CLASSES = {
    "language_model": AutoModelForMaskedLM,
    "classifier": AutoModelForSequenceClassification,
    "spans": AutoModelForQuestionAnswering,
}


def make_config(family: str, settings: ModelSettings, vocabulary: Vocabulary) -> PreTrainedConfig:
    """The config of a family, which is a file of stages/nets/families, in a size."""
    return load_plugin(FAMILIES, family, "family").make_config(settings, vocabulary)


def read_config(folder: Path) -> PreTrainedConfig:
    """The config of the model saved in `folder`."""
    if not (folder / "config.json").is_file():
        raise InputError(f"{folder}/config.json: no such file")
    return AutoConfig.from_pretrained(folder, local_files_only=True, trust_remote_code=False)


def make_model(head: Head, config: PreTrainedConfig, seed: int, attention: str) -> PreTrainedModel:
    """A model with random weights, the same for the same seed, in float32."""
    torch.manual_seed(seed)
    return _CLASSES[head].from_config(config, attn_implementation=attention, dtype=torch.float32)


def read_model(head: Head, folder: Path, seed: int, attention: str) -> PreTrainedModel:
    """The model saved in `folder`, with a head drawn from `seed` where the weights have none.

    Raises InputError where weights of the body are missing.
    """
    torch.manual_seed(seed)
    model, report = _CLASSES[head].from_pretrained(
        folder,
        attn_implementation=attention,
        dtype=torch.float32,
        local_files_only=True,
        trust_remote_code=False,
        use_safetensors=True,
        output_loading_info=True,
    )
    body = f"{model.base_model_prefix}."
    # BERT's pooler is named as part of the body but is the classifier's: a language model has none.
    missing = sorted(key for key in report["missing_keys"] if key.startswith(body) and ".pooler." not in key)
    if missing:
        raise InputError(f"{folder}: the weights lack {missing[0]} and {len(missing) - 1} more of the model's body")
    return model


def longest_input(config: PreTrainedConfig) -> int:
    """The most tokens a model of this config reads."""
    return load_plugin(FAMILIES, config.model_type, "family").longest_input(config)


def takes_segments(model: PreTrainedModel) -> bool:
    """Whether the model tells the question from the passage by segment ids."""
    return getattr(model.config, "type_vocab_size", 0) > 1
