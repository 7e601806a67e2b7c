"""Loading a fine-tuned model from its folder and, if that has only part of the weights, the pretrained model.

A published model that is neither one of transformers nor of peft has a `retrace.json`, which says how it was tuned, and
is loaded by `load_tuned`.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from huggingface_hub import snapshot_download
from torch import nn

from retrace.core.errors import InputError
from retrace.core.files import read_json
from retrace.core.settings import Section, Seed, build
from retrace.datasets.examples import read_classes
from retrace.finetuning.method import FILE, Method, load_trained, read_method
from retrace.finetuning.settings import load_method
from retrace.hub.pins import Pin
from retrace.hub.repository import fetch, hub_session, hub_token
from retrace.models.heads import Head, read_model
from retrace.results.grid import Cell, Grid
from retrace.tasks.question_answering.extractive import SpanModel
from retrace.tasks.question_answering.generative import ANSWERING, Generator
from retrace.tasks.question_answering.settings import AnswerSettings
from retrace.tokens.tokenizer import Vocabulary, load_tokenizer

DESCRIPTION, BASE = "retrace.json", "base"  # next to the trained weights: how they were tuned, and the base model
NEEDED = ["*.json", "*.safetensors"]
RUN_FIRST = "run dvc repro, or dvc pull where others have run it"


def require_weights(folder: Path) -> None:
    """Raise InputError if no run has written a model's folder."""
    if not folder.is_dir():
        raise InputError(f"{folder}: no such folder; {RUN_FIRST}")


@dataclass(frozen=True)
class Tuning:
    """How a model was tuned."""

    method: Method
    head: Head
    classes: tuple[str, ...] = ()  # of a classifier, by number
    question_match: bool = False
    seed: int = 0  # of the run; from it a method may draw weights that it does not train, and so does not save

    def description(self, base: Pin | None) -> dict[str, Any]:
        """The json that `read_description` reads; `base` is the pretrained model if it is published elsewhere."""
        return {
            "method": self.method.file, "settings": self.method.settings.model_dump(), "head": self.head,
            "classes": self.classes, "question_match": self.question_match, "seed": self.seed,
            "base": str(base) if base else None,
        }  # fmt: skip


class Description(Section):
    """The contents of a retrace.json."""

    method: str
    settings: dict[str, Any]
    head: Head
    classes: tuple[str, ...]
    question_match: bool
    seed: Seed = 0
    base: str | None = None  # the pretrained model on the hub; None: in the folder `BASE`


def read_description(path: Path) -> tuple[Tuning, str | None]:
    """The tuning in a retrace.json, and the repository of the pretrained model if it is not published with it.

    Raises InputError, which names the file and the key: anybody may have written it.
    """
    found = build(Description, {"": read_json(path)}, "", path)
    module = load_method(found.method, "method", path)
    settings = build(module.Settings, {"settings": found.settings}, "settings", path)
    method = Method(module, settings, f"{path}: settings")
    return Tuning(method, found.head, found.classes, found.question_match, found.seed), found.base


def read_tuning(cell: Cell, params: Mapping[str, Any]) -> Tuning:
    """How a cell of the grid was tuned."""
    method = read_method(params, cell.method, cell.task)
    # Names in this project, which mean nothing elsewhere.
    method = replace(method, settings=method.settings.model_copy(update={"method": None, "checkpoint": None}))
    grid = Grid.read(params)
    if grid.kind_of(cell.task) == "classification":
        return Tuning(method, "classifier", read_classes(grid.data_of(cell.task)), seed=cell.seed)
    reading = build(AnswerSettings, params, cell.task)
    return Tuning(method, ANSWERING[reading.answers].head, question_match=reading.question_match, seed=cell.seed)


def read_tuned(tuning: Tuning, folder: Path, pretrained: Path) -> nn.Module:
    """The model whose weights, or the trained part of them, are saved in `folder`, in evaluation mode.

    A transformers model, or a `SpanModel` around one if it takes question matches. Raises InputError if the weights
    are not those of a model tuned in this way.
    """
    is_part = (folder / FILE).is_file()
    if is_part:
        body = tuning.method.start(tuning.head, pretrained, tuning.seed, "sdpa", tuning.classes)
    else:
        body = read_model(tuning.head, folder, 0, "sdpa", needs_head=True)
    # Wrapped as in training, since the parameters of a saved part are named as in the wrapped model.
    whole: nn.Module = body
    if tuning.head == "language_model":
        whole = Generator(body)
    elif tuning.head == "spans":
        whole = SpanModel(body, tuning.question_match)
    if is_part:
        load_trained(whole, folder)
    elif isinstance(whole, SpanModel):
        whole.load_match(folder)
    return (whole if tuning.question_match else body).eval()


def load_tuned(name: str, revision: str | None = None) -> nn.Module:
    """A model that `retrace publish` sent to the hub in Retrace's own format, or that is in the folder `name`.

    Raises InputError if there is none, or if files came with other checksums than the hub's.
    """
    folder = Path(name) if Path(name).is_dir() else _fetched(name, revision)
    if not (folder / DESCRIPTION).is_file():
        raise InputError(f"{name}: there is no {DESCRIPTION}, so it is not a model that needs Retrace to be loaded")
    (tuning, named), base = read_description(folder / DESCRIPTION), folder / BASE
    if named is not None:
        pin = Pin.parse(named, f"{name}: {DESCRIPTION}: base")
        base = _fetched(pin.repository, pin.commit)
    model: Any = read_tuned(tuning, folder, base)
    # As in training: a causal classifier reads the last token that is no padding; a published base may name none.
    getattr(model, "body", model).config.pad_token_id = Vocabulary.of(load_tokenizer(folder)).pad
    return model


def _fetched(name: str, revision: str | None) -> Path:
    with hub_session(name):
        folder = Path(snapshot_download(name, revision=revision, allow_patterns=NEEDED, token=hub_token()))
    return fetch(Pin(name, folder.name), "model", NEEDED)  # checks the files of that commit
