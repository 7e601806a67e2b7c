"""Models by name: the presets of the folder beside, a folder with a config, or the model of params.yaml."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from transformers import AutoConfig, PreTrainedConfig

from retrace.core.errors import InputError
from retrace.core.settings import build, plugin_names, read_params
from retrace.models.heads import FAMILIES, Head, make_config, read_config
from retrace.models.settings import ModelSettings
from retrace.tokens.settings import SPECIAL, TokenizerSettings
from retrace.tokens.tokenizer import Vocabulary

FOLDER = Path(__file__).with_suffix("")
HEADS: dict[str, Head] = {"classification": "classifier", "qa": "spans", "lm": "language_model"}  # as commands say it


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


def find_model(name: str | None) -> NamedModel:
    """The preset of that name, the model saved in that folder, or the one that params.yaml describes where None.

    Raises InputError where there is none, or its family is not one of retrace/families.
    """
    if name is None:
        return NamedModel("params.yaml", config_of(read_params()))
    if name in preset_names():
        preset = json.loads((FOLDER / f"{name}.json").read_text(encoding="utf-8"))
        published = tuple(Published(**entry) for entry in preset["published"])
        return NamedModel(name, AutoConfig.for_model(**preset["config"]), published)
    if not Path(name).is_dir():
        raise InputError(f"{name}: neither a folder nor one of the presets {', '.join(preset_names())}")
    return NamedModel(name, _read(Path(name)))


def config_of(params: Mapping[str, Any]) -> PreTrainedConfig:
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
