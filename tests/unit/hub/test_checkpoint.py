"""Checkpoints to start from; tests/campaigns has damaged ones."""

import json
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file

from retrace.core.errors import InputError
from retrace.hub.checkpoint import (
    check_model,
    check_weights,
    copy_checkpoint,
    draw_weights,
    facts,
    set_padding,
)
from retrace.hub.pins import InitialCheckpoint, Pin, PinnedFolder
from retrace.tokens.tokenizer import Vocabulary, load_tokenizer
from tests.hub.content.models import BERT, LLAMA, write_model
from tests.toy import ROOT

COMMIT = "0" * 40


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return write_model(tmp_path, BERT)


def test_a_model_of_another_family_names_the_setting(folder: Path) -> None:
    with pytest.raises(
        InputError, match=r"^data/params.yaml: checkpoints.x.family: llama is not allowed; org/name is a"
    ):
        check_model(folder, "org/name", "llama", "checkpoints.x.family")


@pytest.mark.parametrize("parts", [1, 2])
def test_pickled_weights_are_converted_by_what_the_docs_say(
    folder: Path, parts: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    weights = load_file(folder / "model.safetensors")
    weights["cls.predictions.decoder.weight"] = weights["bert.embeddings.word_embeddings.weight"]  # tied
    (folder / "model.safetensors").unlink()
    for number in range(parts):
        of = {name: weight for place, (name, weight) in enumerate(weights.items()) if place % parts == number}
        torch.save(of, folder / f"pytorch_model-{number}.bin")
    said = "^own: there is no model.safetensors in it; .*; docs/models.md has the commands that convert its pytorch_"
    with pytest.raises(InputError, match=said):
        check_weights(folder, "own", PinnedFolder(folder, "0" * 12))
    monkeypatch.chdir(folder)
    (folder / "converted").mkdir()
    for path in folder.glob("*.bin"):
        path.rename(folder / "converted" / path.name)
    exec((ROOT / "docs/models.md").read_text().partition("<<'END'\n")[2].partition("\nEND\n")[0], {})
    converted = load_file(folder / "converted/model.safetensors")
    assert converted.keys() == weights.keys()
    assert all(torch.equal(converted[name], weight) for name, weight in weights.items())


def test_a_part_of_the_weights_that_is_not_there(folder: Path) -> None:
    first, second = (f"model-0000{number}-of-00002.safetensors" for number in (1, 2))
    (folder / "model.safetensors").rename(folder / first)
    index = json.dumps({"weight_map": {"a": first, "b": second}})
    (folder / "model.safetensors.index.json").write_text(index)
    with pytest.raises(InputError, match=f"there is no {second} in it; weights are read from safetensors only$"):
        check_weights(folder, "org/name", PinnedFolder(folder, "0" * 12))


def test_a_tokenizer_is_made_where_there_is_only_its_vocabulary(folder: Path, tmp_path: Path) -> None:
    filled = tmp_path / "filled"
    filled.mkdir()
    published = load_tokenizer(folder)
    (folder / "tokenizer.json").unlink()
    origin = PinnedFolder(folder, "0" * 12)
    copy_checkpoint(filled, InitialCheckpoint(origin, "bert"), origin)
    assert load_tokenizer(filled).get_vocab() == published.get_vocab()
    assert not (folder / "tokenizer.json").exists()


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
    path, drawn = folder / "model.safetensors", []
    before = load_file(path)
    for seed in (1, 1, 2):
        draw_weights(folder, seed)
        drawn.append(load_file(path))
    name = "bert.encoder.layer.0.attention.self.query.weight"
    assert drawn[0].keys() == drawn[1].keys()
    assert all(torch.equal(drawn[0][each], drawn[1][each]) for each in drawn[0])
    assert not torch.equal(drawn[0][name], before[name])
    assert not torch.equal(drawn[0][name], drawn[2][name])
    assert "bert.pooler.dense.weight" in drawn[0]  # as the published ones have it


def test_a_config_without_padding_gets_the_tokenizers(tmp_path: Path) -> None:
    write_model(tmp_path, LLAMA)
    assert json.loads((tmp_path / "config.json").read_text())["pad_token_id"] is None
    set_padding(tmp_path)
    padding = json.loads((tmp_path / "config.json").read_text())["pad_token_id"]
    assert padding == Vocabulary.of(load_tokenizer(tmp_path)).pad
