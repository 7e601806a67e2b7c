"""Every data set and model that params.yaml and the studies pin, by its name, commit, config, splits and columns.

The local hub holds tiny ones under these names and commits, laid out as the real ones are.
"""

import json
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import yaml

from retrace.hub.checkpoint import Pin, is_pin
from tests.hub import LocalHub
from tests.hub.client import run_client
from tests.hub.content import models, tokenizers
from tests.hub.content.datasets import AG_NEWS, ag_news, published_datasets
from tests.hub.content.models import BERT, LLAMA, MODERNBERT, ROBERTA, SCIBERT, published_models
from tests.tiny import MODEL
from tests.toy import ROOT

pytestmark = pytest.mark.slow

NEWS = {part: [{"text": f"news {number}", "label": number % 4} for number in range(40)] for part in ("train", "test")}
OTHER_FILES = {"flax_model.msgpack": b"0", "pytorch_model.bin": b"0", "tf_model.h5": b"0", "README.md": b"# Model\n"}
CONTENT: dict[str, Callable[[], dict[str, bytes]]] = {
    **{name: partial(lambda name: published_datasets()[name], name) for name in published_datasets()},
    AG_NEWS: lambda: ag_news(NEWS),
    **{
        name: partial(lambda name: published_models()[name] | OTHER_FILES, name)
        for name in (BERT, ROBERTA, MODERNBERT, LLAMA)
    },
    SCIBERT: lambda: models.scibert(tokenizers.bert(), MODEL) | OTHER_FILES,
}
PARAMS = [ROOT / "data/params.yaml", *sorted((ROOT / "studies").glob("*/params.yaml"))]


def _read_datasets(hubs: list[dict[str, Any]], folder: str) -> list[dict[str, Any]]:
    """Write the parts of each `hub` of a params.yaml, and read its further tasks; what there is of each."""
    from retrace.sources.hub_settings import HubClassificationParams
    from retrace.sources.hub_tasks import read_hub_task

    found = []
    for number, hub in enumerate(hubs):
        tasks = hub.get("classification") or {}
        parts = _written(Path(folder) / str(number), hub) if "text" in hub else {}
        for task in tasks:
            data = read_hub_task(
                HubClassificationParams.read({"hub": hub}, key=task).task, f"hub.classification.{task}"
            )
            parts[task] = [list(data.classes), {part: len(rows) for part, rows in data.parts.items()}]
        found.append(parts)
    return found


def _written(folder: Path, hub: dict[str, Any]) -> dict[str, Any]:
    """How many documents of each part, which labels and which kinds of question `data: hub` gives."""
    from retrace.core.paths import questions_path, running_text, sentences_path
    from retrace.datasets.examples import read_sentences
    from retrace.datasets.squad import read_questions
    from retrace.datasets.text import read_documents, text_path
    from retrace.hub.settings import HubParams
    from retrace.hub.source import write_source

    write_source(folder, HubParams.read({"hub": hub}).hub)
    text = [text_path(running_text(folder), part) for part in ("train", "valid", "test")]
    sentences = [read_sentences(sentences_path(folder, part)) for part in ("train", "dev")]
    questions = [read_questions(questions_path(folder, part)) for part in ("train", "dev")]
    return {
        "text": [len(list(read_documents(path))) for path in text],
        "sst2": [sorted({row.label for row in rows}) for rows in sentences],
        "squad": [sorted({bool(question.answers) for question in asked}) for asked in questions],
    }


def _read_models(starts: list[tuple[str, str]], folder: str) -> dict[str, list[str]]:
    """Fetch models by pin and family; how each cuts a sentence."""
    from retrace.hub.checkpoint import InitialCheckpoint
    from retrace.hub.checkpoint_files import copy_checkpoint
    from retrace.models.heads import read_config, read_model
    from retrace.tokens.tokenizer import load_tokenizer

    found = {}
    for number, (pin, family) in enumerate(starts):
        target = Path(folder) / str(number)
        target.mkdir()
        origin = Pin.parse(pin, "model.checkpoint")
        copy_checkpoint(target, InitialCheckpoint(origin, family), origin)
        read_model("language_model", target, 1, "eager")
        assert read_config(target).model_type == family
        found[pin] = load_tokenizer(target).encode("the hall was fine .").tokens
    return found


def _preset(path: Path) -> dict[str, Any]:
    """The settings of data/params.yaml or of a study, those of data/params.yaml in it among the others."""
    preset = yaml.safe_load(path.read_text())
    return {**preset, **preset.pop("data/params.yaml", {})}


def _pins(path: Path) -> tuple[list[str], list[tuple[str, str]]]:
    """Of the data sets, and of the models with the family of each."""
    params = _preset(path)
    hub = params.get("hub") or {}
    parts = [hub[part] for part in ("text", "sst2", "squad") if part in hub]
    datasets = [part["repository"] for part in [*parts, *(hub.get("classification") or {}).values()]]
    starts = [
        {"family": params.get("family"), **(params.get("model") or {})},
        *(params.get("checkpoints") or {}).values(),
    ]
    return datasets, [(start["checkpoint"], start["family"]) for start in starts if start.get("checkpoint")]


def _put_up(hub: LocalHub) -> None:
    for path in PARAMS:
        datasets, starts = _pins(path)
        for kind, pins in (("dataset", datasets), ("model", [pin for pin, _ in starts])):
            for pin in pins:
                assert is_pin(pin), f"{path}: {pin}"
                name, commit = pin.split("@")
                there = hub.repositories.get((kind, name))  # type: ignore[call-overload]
                if there is None or commit not in there.commits:
                    assert name in CONTENT, f"{path}: what the repository {name} looks like is not said here"
                    hub.add(kind, name, CONTENT[name](), commit=commit)  # type: ignore[arg-type]


def test_every_data_set_is_there_in_config_splits_and_columns(hub: LocalHub, tmp_path: Path) -> None:
    _put_up(hub)
    hubs = [_preset(path).get("hub") for path in PARAMS]
    different = {json.dumps(of, sort_keys=True): of for of in hubs if of}
    found = run_client(hub, tmp_path / "home", _read_datasets, list(different.values()), str(tmp_path))
    for of, parts in zip(different.values(), found, strict=True):
        assert parts.keys() == ({"text", "sst2", "squad"} & of.keys()) | (of.get("classification") or {}).keys()
        if "text" in of:
            assert min(parts["text"]) > 0
            assert (parts["sst2"], parts["squad"]) == ([[0, 1]] * 2, [[False, True]] * 2)
    (news,) = (parts["ag_news"] for parts in found if "ag_news" in parts)
    assert news[0] == ["World", "Sports", "Business", "Sci/Tech"]
    assert news[1] == {"train": 38, "dev": 2, "test": 40}
    configs = {Path(seen.path).parent.name for seen in hub.requests if ".parquet" in seen.path}
    assert configs == {"wikitext-2-raw-v1", "sst2", "squad_v2", "data"}


def test_every_model_is_there_with_a_tokenizer(hub: LocalHub, tmp_path: Path) -> None:
    _put_up(hub)
    starts = sorted({tuple(start) for path in PARAMS for start in _pins(path)[1]})
    found = run_client(hub, tmp_path / "home", _read_models, starts, str(tmp_path))
    assert {pin.split("@")[0] for pin in found} == {BERT, ROBERTA, LLAMA, SCIBERT}
    by_name = {pin.split("@")[0]: tokens for pin, tokens in found.items()}
    assert by_name[SCIBERT] == by_name[BERT]
    assert [tokens[0] for tokens in by_name.values()].count("[CLS]") == 2
    assert not [seen for seen in hub.requests if Path(seen.path).name in set(OTHER_FILES) - {"README.md"}]
