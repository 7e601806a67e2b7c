"""A tuned model, put together from what its folder holds and, where that is a part only, the pretrained one.

A published model that is more than a transformers or peft model has a `retrace.json`, which says how it was tuned, and
is loaded by `load_tuned`.
"""

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from huggingface_hub import snapshot_download
from torch import nn
from transformers import PreTrainedModel

from stages.harness.hub_session import hub_session, hub_token
from stages.harness.pin import Pin
from stages.harness.plugins import load_plugin
from stages.harness.records import read_json
from stages.harness.settings import build, check_value
from stages.nets.heads import Head, read_model
from stages.nets.part import FILE, MethodSettings, load_trained
from stages.nets.reader import Reader
from stages.nets.writer import Writer
from stages.tasks.matching import KINDS
from stages.training.methods import METHODS

DESCRIPTION, BASE = "retrace.json", "base"  # beside the weights that were trained: how, and what they go with
NEEDED = ["*.json", "*.safetensors"]


@dataclass(frozen=True)
class Tuning:
    """How a model was tuned."""

    method: str
    settings: MethodSettings
    head: Head
    classes: tuple[str, ...] = ()  # of a classifier, by number
    question_match: bool = False

    @classmethod
    def of(cls, values: Mapping[str, Any]) -> "Tuning":
        """From what `description` gave, out of a file that anybody may have written."""
        module = load_plugin(METHODS, check_value(values, "method", str), "method")
        settings = build(module.Settings, values, "settings")
        classes = tuple(check_value(values, "classes", list[str]))
        matches = check_value(values, "question_match", bool)
        return cls(values["method"], settings, check_value(values, "head", Head), classes, matches)

    def description(self) -> dict[str, Any]:
        """The same as json."""
        return asdict(self)

    def start(self, pretrained: Path) -> PreTrainedModel:
        """The model as it was before training, but for the seed of what is random."""
        module = load_plugin(METHODS, self.method, "method")
        return module.start(self.head, pretrained, 0, "sdpa", self.settings, self.classes)


def read_tuned(tuning: Tuning, folder: Path, pretrained: Path) -> nn.Module:
    """The model whose weights, or the trained part of them, are saved in `folder`, ready to predict.

    A transformers model, or a `Reader` around one where question matches go in. Raises InputError where the weights
    are not those of a model that was tuned so.
    """
    if not (folder / FILE).is_file():
        body = read_model(tuning.head, folder, 0, "sdpa", is_tuned=True)
        whole = _around(body, tuning)
        if isinstance(whole, Reader):
            whole.load_match(folder)
    else:
        body = tuning.start(pretrained)
        whole = _around(body, tuning)
        load_trained(whole, folder)
    return (whole if tuning.question_match else body).eval()


def load_tuned(name: str, revision: str | None = None) -> nn.Module:
    """A model that `retrace publish` sent to the hub in Retrace's own format, or that lies in the folder `name`.

    Raises InputError where there is none.
    """
    folder = Path(name) if Path(name).is_dir() else _fetched(name, revision)
    description = read_json(folder / DESCRIPTION)
    base = description.get("base")
    if base is None:
        return read_tuned(Tuning.of(description), folder, folder / BASE)
    pin = Pin.parse(base, f"{name}: {DESCRIPTION}: base")
    return read_tuned(Tuning.of(description), folder, _fetched(pin.repository, pin.commit))


def _around(body: PreTrainedModel, tuning: Tuning) -> nn.Module:
    """The model as it was trained, under whose names a part of it is saved."""
    if tuning.head == "language_model":
        return Writer(body)
    return Reader(body, KINDS if tuning.question_match else 0) if tuning.head == "spans" else body


def _fetched(name: str, revision: str | None) -> Path:
    with hub_session(name):
        return Path(snapshot_download(name, revision=revision, allow_patterns=NEEDED, token=hub_token()))
