"""The model that training starts from: weights, config and tokenizer in data/model, where params.yaml names one.

`stages.sources.model` brings them there and writes down where they are from.
"""

from pathlib import Path
from typing import Any

from stages.corpus.source import DATA
from stages.harness.records import read_json

CHECKPOINT = DATA / "model"
FACTS = "source.json"


def checkpoint_facts(folder: Path = CHECKPOINT) -> dict[str, Any]:
    """Where the model is from, as `model.from` names it, and what its card says; `from` is null where there is none."""
    return read_json(folder / FACTS)


def given_checkpoint(folder: Path = CHECKPOINT) -> Path | None:
    """The folder of the model; None where training starts from random weights."""
    return None if checkpoint_facts(folder)["from"] is None else folder
