"""Models from the hub: the real clients in processes of their own, against a hub on loopback.

Faults are handled as for data sets, see test_hub_data.py and, for wrong bytes, test_hub_layouts.py.
"""

import json
from dataclasses import replace
from pathlib import Path

import pytest

from retrace.core.files import SUMS
from tests.hub import LocalHub
from tests.hub.content import add_models
from tests.hub.content.models import BERT, LLAMA, ROBERTA, published_models
from tests.toy import Project

FAMILIES = {"bert": BERT, "roberta": ROBERTA, "llama": LLAMA}  # the files of a ModernBERT are those of a Llama
CARD = b"---\nlicense: apache-2.0\nlanguage: en\ndatasets:\n- bookcorpus\n---\n# A model\n"


@pytest.fixture
def user(project: Project, hub: LocalHub, tmp_path: Path) -> Project:
    """The project of someone who knows the local hub alone."""
    return replace(project, variables=hub.environment(tmp_path / "home"))


def _start_from(user: Project, family: str, pin: str) -> None:
    user.set_all({"family": family, "model.checkpoint": pin})


def _fetch(user: Project, code: int = 0) -> str:
    """Fetch the model; where that fails, the line that says why."""
    said = user.stage("sources.model", code=code).stderr
    assert said.count("\n") == 1 or not code
    return said


@pytest.mark.parametrize("family", list(FAMILIES))
def test_a_model_is_fetched_once_and_is_there_offline(user: Project, hub: LocalHub, family: str) -> None:
    name = FAMILIES[family]
    wanted = {**published_models()[name], "README.md": CARD}
    unwanted = {"pytorch_model.bin": b"0" * 100, "onnx/model.safetensors": b"0" * 100}
    commit = hub.add("model", name, wanted | unwanted)
    hub.add("model", name, {"README.md": b"a later one"})
    _start_from(user, family, f"{name}@{commit}")
    _fetch(user)
    folder = user.folder / "data/model"
    files = {path.name: path.read_bytes() for path in folder.iterdir()}
    facts = json.loads(files.pop("source.json"))
    assert len(files.pop(SUMS).splitlines()) == len(files) + 1  # source.json too
    assert files == {file: content for file, content in wanted.items() if file != "generation_config.json"}
    assert facts == {
        "from": f"{name}@{commit}", "repository": name, "commit": commit,
        "license": "apache-2.0", "language": "en", "datasets": ["bookcorpus"],
    }  # fmt: skip
    assert not [seen for seen in hub.requests if "pytorch_model" in seen.path or "onnx" in seen.path]
    asked = len(hub.requests)
    _fetch(user.with_variables(HF_HUB_OFFLINE="1"))
    _fetch(user)
    assert len(hub.requests) == asked


def test_a_model_of_the_hub_is_passed_on_offline(user: Project, hub: LocalHub) -> None:
    _start_from(user, "roberta", f"{ROBERTA}@{add_models(hub)[ROBERTA]}")
    user.set("pretrain.epochs", 0)
    _fetch(user)
    asked = len(hub.requests)
    for stage in ("sources.sample", "tokenize", "pretrain", "perplexity_eval"):
        user.with_variables(HF_HUB_OFFLINE="1").stage(stage)
    assert len(hub.requests) == asked
    tokenizer = (user.folder / "models/pretrained/tokenizer.json").read_bytes()
    assert tokenizer == published_models()[ROBERTA]["tokenizer.json"]


def test_what_was_fetched_but_not_verified_is_verified(user: Project, hub: LocalHub) -> None:
    """As after a kill between the two, which leaves no sign that the files were verified."""
    _start_from(user, "llama", f"{LLAMA}@{add_models(hub)[LLAMA]}")
    _fetch(user)
    home = Path(user.variables["HF_HOME"])
    for stamp in home.rglob("verified/*"):
        stamp.unlink()
    (weights,) = home.rglob("snapshots/*/model.safetensors")
    weights.resolve().write_bytes(b"0" * weights.stat().st_size)
    assert "came with the sha256" in _fetch(user, code=2)
    _fetch(user)
