"""What a study's small run reads: tiny models and small data under the names and commits that its params.yaml pins.

Whatever name a model has, there is something for it, of the family that params.yaml says.
"""

from collections.abc import Callable, Iterator, Mapping
from functools import cache, partial
from pathlib import Path
from typing import Any

import yaml

from retrace.files.settings import ClassificationParams
from retrace.hub.pins import PIN, Pin
from retrace.models.settings import ModelSettings
from tests.hub.content import datasets, models, tokenizers
from tests.hub.content.datasets import AG_NEWS, GLUE, SQUAD, SQUAD_V1, WIKITEXT, Files
from tests.hub.content.models import SCIBERT
from tests.hub.content.small import small_data
from tests.hub.repository import Kind
from tests.hub.server import LocalHub

SIZE = ModelSettings(hidden_size=64, layers=2, heads=2, intermediate_size=128, max_positions=256, init_std=0.06)
TOKENS = 4000  # of a vocabulary, or as many as there are words if they are fewer
DATASETS: dict[str, Callable[[], Files]] = {
    WIKITEXT: lambda: datasets.wikitext(small_data().text),
    GLUE: lambda: datasets.glue(small_data().sentences),
    SQUAD: lambda: datasets.squad(SQUAD, small_data().questions),
    SQUAD_V1: lambda: datasets.squad(SQUAD_V1, small_data().answerable),
    AG_NEWS: lambda: datasets.ag_news(small_data().news),
}
Pinned = tuple[Kind, Pin, Callable[[], Files]]


def add_study(hub: LocalHub, study: Path) -> list[str]:
    """Put all that a study's folder pins on a hub, unless it is there; returns the pins.

    Raises ValueError if `hub` names a data set that there is nothing like.
    """
    params = read_preset(study / "params.yaml")
    found: dict[tuple[Kind, Pin], Callable[[], Files]] = {}
    for kind, pin, files in (*_datasets(params), *_models(params)):
        found.setdefault((kind, pin), files)
    for (kind, pin), files in found.items():
        there = hub.repositories.get((kind, pin.repository))
        if there is None or pin.commit not in there.commits:
            hub.add(kind, pin.repository, files(), commit=pin.commit)
    return [str(pin) for _, pin in found]


def fill_folders(study: Path) -> list[Path]:
    """Write small versions of those of the user's files that a study names and that are not there; returns them.

    Raises ValueError if there is nothing like one of them.
    """
    params, written = read_preset(study / "params.yaml"), []
    for task in params.get("classification") or {}:
        settings = ClassificationParams.read(params, key=task).task
        folder = study.resolve().parents[1] / settings.folder
        for path in (folder / name for name in settings.parts.values()):
            if path.exists():
                continue
            there = small_data().files.get(folder.name, {})
            content = there.get(path.name) or there.get(f"{path.stem}.jsonl")  # SciBERT's repository calls those .txt
            if content is None:
                raise ValueError(f"classification.{task}: there is nothing like {folder.name}/{path.name}")
            folder.mkdir(parents=True, exist_ok=True)
            path.write_text(content, encoding="utf-8")
            written.append(path)
    return written


def read_preset(path: Path) -> dict[str, Any]:
    """The settings of a preset, those of data/params.yaml among the others."""
    preset = yaml.safe_load(path.read_text())
    return {**preset, **preset.pop("data/params.yaml", {})}


def _datasets(params: Mapping[str, Any]) -> Iterator[Pinned]:
    hub = params.get("hub") or {}
    parts = {f"hub.{part}": hub[part] for part in ("text", "sst2", "squad") if part in hub}
    for key, of in {**parts, **(hub.get("classification") or {})}.items():
        pin = Pin.parse(of["repository"], f"{key}.repository")
        if pin.repository not in DATASETS:
            raise ValueError(f"{key}: there is nothing like {pin.repository}; only {', '.join(DATASETS)}")
        yield "dataset", pin, DATASETS[pin.repository]


def _models(params: Mapping[str, Any]) -> Iterator[Pinned]:
    entries = {f"checkpoints.{name}": entry for name, entry in (params.get("checkpoints") or {}).items()}
    entries["model"] = {"family": params.get("family"), **(params.get("model") or {})}
    for key, entry in entries.items():
        if PIN.fullmatch(str(entry.get("checkpoint"))):
            pin = Pin.parse(entry["checkpoint"], f"{key}.checkpoint")
            yield "model", pin, partial(_model, entry["family"], pin.repository == SCIBERT)


@cache
def _model(family: str, scientific: bool) -> Files:
    """Random weights with a tokenizer of small data's words, in the layout of SciBERT or of the family."""
    text = small_data().documents
    words = {word for document in text for word in document.lower().split()}
    tokenizer = getattr(tokenizers, family)(text, min(TOKENS, len(words)), SIZE.max_positions)
    return getattr(models, "scibert" if scientific else family)(tokenizer, SIZE)
