"""Models to start from, weights, config and tokenizer of each, where params.yaml names them.

That of pretraining lies in data/model, those of tuning methods that start from another in data/models.

`stages.sources.model` brings them there and writes down where they are from.
"""

from pathlib import Path
from typing import Any

from stages.corpus.source import DATA
from stages.harness.records import read_json

CHECKPOINT = DATA / "model"
NAMED = DATA / "models"
FACTS = "source.json"


def named_checkpoint(name: str) -> Path:
    """The folder of an entry under `models` in params.yaml."""
    return NAMED / name


def checkpoint_facts(folder: Path = CHECKPOINT) -> dict[str, Any]:
    """Where the model is from, as `model.from` names it, and what its card says; `from` is null where there is none."""
    return read_json(folder / FACTS)


def given_checkpoint(folder: Path = CHECKPOINT) -> Path | None:
    """The folder of the model; None where training starts from random weights."""
    return None if checkpoint_facts(folder)["from"] is None else folder
