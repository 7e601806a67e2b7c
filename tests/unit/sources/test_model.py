import json
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file

from stages.corpus.tokenizer import load_tokenizer
from stages.harness.errors import InputError
from stages.harness.pin import Pin
from stages.nets.vocabulary import Vocabulary
from stages.sources.model import check, draw_weights, facts, name_padding
from tests.hub.content.models import BERT, LLAMA, published_models

COMMIT = "0" * 40


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for name, content in published_models()[BERT].items():
        (tmp_path / name).write_bytes(content)
    return tmp_path


def test_a_model_of_the_family_is_right(folder: Path) -> None:
    check(folder, "org/name", "bert")


@pytest.mark.parametrize("name", ["config.json", "tokenizer.json", "model.safetensors"])
def test_what_is_not_there(folder: Path, name: str) -> None:
    (folder / name).rename(folder / "pytorch_model.bin")
    with pytest.raises(InputError, match=f"^org/name: there is no {name} in it"):
        check(folder, "org/name", "bert")


def test_a_part_of_the_weights_that_is_not_there(folder: Path) -> None:
    first, second = (f"model-0000{number}-of-00002.safetensors" for number in (1, 2))
    (folder / "model.safetensors").rename(folder / first)
    index = folder / "model.safetensors.index.json"
    index.write_text(json.dumps({"weight_map": {"a": first, "b": second}}))
    with pytest.raises(InputError, match=f"there is no {second} in it; weights are read from safetensors only"):
        check(folder, "org/name", "bert")
    index.write_text("{}")
    with pytest.raises(InputError, match=r"index.json: no weight_map in it"):
        check(folder, "org/name", "bert")


def test_another_family(folder: Path) -> None:
    with pytest.raises(InputError, match=r"^params.yaml: family: modernbert is not allowed; org/name is a bert$"):
        check(folder, "org/name", "modernbert")
    config = json.loads((folder / "config.json").read_text())
    (folder / "config.json").write_text(json.dumps(config | {"model_type": "t5"}))
    with pytest.raises(InputError, match=r"^org/name: model_type: 't5' is not allowed; expected one of bert, llama"):
        check(folder, "org/name", "bert")


def test_a_tokenizer_of_another_model(folder: Path) -> None:
    for name, content in published_models()[LLAMA].items():
        if name.startswith(("tokenizer", "special")):
            (folder / name).write_bytes(content)
    with pytest.raises(InputError, match="the tokenizer has 322 tokens, of which the model knows 120"):
        check(folder, "org/name", "bert")


CARD = """---
license: other
license_name: llama3.2
language: [en, de]
datasets: [bookcorpus]
tags: [x]
---
# A model
"""


def test_what_the_card_says_is_kept(folder: Path) -> None:
    (folder / "README.md").write_text(CARD)
    assert facts(Pin("org/name", COMMIT), folder) == {
        "from": f"org/name@{COMMIT}", "repository": "org/name", "commit": COMMIT, "license": "other",
        "license_name": "llama3.2", "language": ["en", "de"], "datasets": ["bookcorpus"],
    }  # fmt: skip


@pytest.mark.parametrize("card", [None, "# No metadata\n", "---\nlicense: [\n---\n", "---\n- a\n---\n"])
def test_a_card_that_says_nothing(folder: Path, card: str | None) -> None:
    if card is not None:
        (folder / "README.md").write_text(card)
    assert facts(Pin("org/name", COMMIT), folder).keys() == {"from", "repository", "commit"}


def test_weights_are_drawn_anew(folder: Path) -> None:
    before = load_file(folder / "model.safetensors")
    draw_weights(folder, 1)
    once = load_file(folder / "model.safetensors")
    draw_weights(folder, 1)
    again = load_file(folder / "model.safetensors")
    draw_weights(folder, 2)
    other = load_file(folder / "model.safetensors")
    name = "bert.encoder.layer.0.attention.self.query.weight"
    assert once.keys() == again.keys()
    assert all(torch.equal(once[name], again[name]) for name in once)
    assert not torch.equal(once[name], before[name])
    assert not torch.equal(once[name], other[name])
    assert "bert.pooler.dense.weight" in once  # as the published ones have it


def test_a_config_without_padding_gets_the_tokenizers(tmp_path: Path) -> None:
    for name, content in published_models()[LLAMA].items():
        (tmp_path / name).write_bytes(content)
    assert json.loads((tmp_path / "config.json").read_text())["pad_token_id"] is None
    name_padding(tmp_path)
    padding = json.loads((tmp_path / "config.json").read_text())["pad_token_id"]
    assert padding == Vocabulary.of(load_tokenizer(tmp_path)).pad
