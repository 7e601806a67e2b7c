"""Checkpoints to start from: how they are pinned, and their files; tests/campaigns has damaged ones."""

import hashlib
import json
import re
from pathlib import Path
from urllib.parse import urlsplit

import pytest
import torch
from huggingface_hub.utils import httpx
from safetensors.torch import load_file, save_file

from retrace.core.errors import InputError
from retrace.core.files import read_json, write_text
from retrace.core.paths import FACTS
from retrace.hub.checkpoint import (
    check_model,
    check_vocabulary,
    check_weights,
    copy_checkpoint,
    draw_weights,
    facts,
    set_padding,
)
from retrace.hub.pins import InitialCheckpoint, Pin, PinnedFolder, folder_digest, read_initial_checkpoint
from retrace.hub.repository import hub_session, hub_token
from retrace.models.heads import read_config
from retrace.tokens.tokenizer import Vocabulary, load_tokenizer
from tests.hub.content.models import BERT, LLAMA, ROBERTA, write_model
from tests.toy import ROOT

COMMIT = "0123456789abcdef0123456789abcdef01234567"


def _origin(value: object) -> Pin | PinnedFolder | None:
    return read_initial_checkpoint({"family": "bert", "model": {"checkpoint": value, "random_seed": None}}).origin


@pytest.fixture
def weights(here: Path) -> Path:
    write_text(Path("weights/config.json"), "{}")
    write_text(Path("weights/more/a"), "b")
    return Path("weights")


def test_the_digest_is_of_names_and_bytes(weights: Path) -> None:
    sums = [hashlib.sha256(content).hexdigest() for content in (b"{}", b"b")]
    lines, digest = f"config.json {sums[0]}\nmore/a {sums[1]}\n", folder_digest(weights)
    assert digest == hashlib.sha256(lines.encode()).hexdigest()[:12]
    write_text(weights / ".cache" / "note", "hidden")
    assert folder_digest(weights) == digest
    (weights / "z\udce9").write_text("")  # its name is Latin-1
    lines = lines.encode() + b"z\xe9 " + hashlib.sha256().hexdigest().encode() + b"\n"
    assert folder_digest(weights) == hashlib.sha256(lines).hexdigest()[:12]
    (weights / "more" / "a").rename(weights / "more" / "c")
    assert folder_digest(weights) != digest


@pytest.mark.parametrize("name", ["/elsewhere", "../own", "x; ls", ""])
def test_a_name_is_that_of_a_folder_of_its_own(name: str) -> None:
    """The stage replaces that folder, and DVC starts it without `retrace check`."""
    entry = {"family": "bert", "checkpoint": f"org/name@{COMMIT}"}
    said = f"data/params.yaml: checkpoints.{name}: the name is not allowed; expected letters, digits, _ and -"
    with pytest.raises(InputError, match=f"^{re.escape(said)}$"):
        read_initial_checkpoint({"checkpoints": {name: entry}}, name)


def test_random_weights_a_commit_of_the_hub_and_a_folder_with_its_digest(weights: Path) -> None:
    assert _origin(None) is None
    assert _origin(f"org/name@{COMMIT}") == Pin("org/name", COMMIT)
    digest = folder_digest(weights)
    assert _origin(f"weights@{digest}") == PinnedFolder(weights, digest)
    weights.rename("weights@home")
    assert str(_origin(f"weights@home@{digest}")) == f"weights@home@{digest}"


def test_a_folder_without_a_digest_is_told_its_digest(weights: Path) -> None:
    said = r"^params\.yaml: model\.checkpoint: 'weights' has no digest; expected weights@"
    with pytest.raises(InputError, match=f"{said}{folder_digest(weights)}$"):
        _origin("weights")


@pytest.mark.parametrize("value", ["weights@0123456789ab", f"weights@{COMMIT[:39]}", "weights@"])
def test_another_digest_is_an_error_that_says_what_to_write(weights: Path, value: str) -> None:
    said = f"^params.yaml: model.checkpoint: '{value}' does not match the folder, which is now weights@"
    with pytest.raises(InputError, match=f"{said}{folder_digest(weights)}$"):
        _origin(value)


@pytest.mark.parametrize("value", ["org/name", "org/name@main", f"org/name@{COMMIT[:12]}", "nowhere@0123456789ab", ""])
def test_neither_a_commit_nor_a_folder(weights: Path, value: str) -> None:
    with pytest.raises(InputError, match=r"is not allowed; expected org/name@commit, all 40 digits of it, or folder@"):
        _origin(value)


def test_a_further_checkpoint_says_its_family_and_may_be_drawn_anew() -> None:
    entry = {"family": "llama", "checkpoint": f"org/name@{COMMIT}", "random_seed": 3}
    start = read_initial_checkpoint({"checkpoints": {"tiny": entry}}, "tiny")
    assert (str(start.origin), start.family, start.seed) == (f"org/name@{COMMIT}", "llama", 3)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return write_model(tmp_path, BERT)


def test_a_model_of_another_family_names_the_setting(folder: Path) -> None:
    with pytest.raises(InputError, match=r"^data/params.yaml: checkpoints.x.family: llama is not allowed; own is a"):
        check_model(folder, "own", "llama", "checkpoints.x.family")


@pytest.mark.parametrize("parts", [1, 2])
def test_pickled_weights_are_converted_by_what_the_docs_say(folder: Path, parts: int, monkeypatch) -> None:
    weights, pickled = load_file(folder / "model.safetensors"), folder / "converted"
    weights["cls.predictions.decoder.weight"] = weights["bert.embeddings.word_embeddings.weight"]  # tied
    pickled.mkdir()
    for number in range(parts):
        torch.save(dict([*weights.items()][number::parts]), pickled / f"pytorch_model-{number}.bin")
    said = "^own: there is no model.safetensors in it; .*; docs/models.md has the commands that convert its pytorch_"
    with pytest.raises(InputError, match=said):
        check_weights(pickled, "own", PinnedFolder(pickled, "0" * 12))
    monkeypatch.chdir(folder)
    exec((ROOT / "docs/models.md").read_text().partition("<<'END'\n")[2].partition("\nEND\n")[0], {})
    torch.testing.assert_close(load_file(pickled / "model.safetensors"), weights, rtol=0, atol=0)


PARTS = [f"model-0000{number}-of-00002.safetensors" for number in (1, 2)]


@pytest.mark.parametrize(
    ("files", "said"),
    [
        (PARTS, f"there is no {PARTS[1]} in it; weights are read from safetensors only$"),
        (["weights.safetensors"], r"'weights\.safetensors' is not allowed; expected model-"),  # which is not copied
    ],
)
def test_parts_of_weights_that_are_not_there_or_have_other_names(folder: Path, files: list[str], said: str) -> None:
    (folder / "model.safetensors").rename(folder / files[0])
    (folder / "model.safetensors.index.json").write_text(json.dumps({"weight_map": dict(enumerate(files))}))
    with pytest.raises(InputError, match=said):
        check_weights(folder, "org/name", PinnedFolder(folder, "0" * 12))


def test_no_code_is_fetched_for_the_attention_that_a_config_names(folder: Path) -> None:
    """Transformers would fetch it from that repository, or ask for the package that does."""
    _set_in_config(folder, _attn_implementation="org/kernels")
    check_model(folder, "org/name", "bert", "family")


def test_quantized_weights_are_refused(folder: Path) -> None:
    _set_in_config(folder, quantization_config={"quant_method": "gptq", "bits": 4})
    with pytest.raises(InputError, match="quantization_config is not allowed"):
        check_model(folder, "org/name", "bert", "family")


def test_a_format_may_insert_only_tokens_of_the_model(folder: Path) -> None:
    described = json.loads((folder / "tokenizer.json").read_text())
    described["post_processor"] = {"type": "BertProcessing", "sep": ["[SEP]", 10**9], "cls": ["[CLS]", 2]}
    (folder / "tokenizer.json").write_text(json.dumps(described))
    with pytest.raises(InputError, match="the tokenizer has 1000000001 tokens, but the model only"):
        check_vocabulary(folder, "org/name")


def _set_in_config(folder: Path, **values: object) -> None:
    config = json.loads((folder / "config.json").read_text())
    (folder / "config.json").write_text(json.dumps(config | values))


def test_a_tokenizer_is_made_where_there_is_only_its_vocabulary(folder: Path, tmp_path: Path) -> None:
    published, filled = load_tokenizer(folder), tmp_path / "filled"
    filled.mkdir()
    (folder / "tokenizer.json").unlink()
    origin = PinnedFolder(folder, "0" * 12)
    copy_checkpoint(filled, InitialCheckpoint(origin, "bert"), origin)
    assert load_tokenizer(filled).get_vocab() == published.get_vocab()
    assert not (folder / "tokenizer.json").exists()


CARD = "---\nlicense: other\nlicense_name: llama3.2\nlanguage: [en, de]\ndatasets: [bookcorpus]\ntags: [x]\n---\n# A\n"
SAID = {"license": "other", "license_name": "llama3.2", "language": ["en", "de"], "datasets": ["bookcorpus"]}
NOTHING = (None, "# No metadata\n", "---\nlicense: [\n---\n", "---\n- a\n---\n")
ODD = ("license: 2020-01-01", 'license: "a\\eb"', "datasets: &a [*a]", "license: !!bool a", "license: " + "[" * 3000)


@pytest.mark.parametrize(
    ("card", "said"), [(CARD, SAID), *((card, {}) for card in NOTHING), *((f"---\n{card}\n---\n", {}) for card in ODD)]
)
def test_what_the_card_says_is_kept(folder: Path, card: str | None, said: dict[str, object]) -> None:
    if card is not None:
        (folder / "README.md").write_text(card)
    found = {"from": f"org/name@{COMMIT}", "repository": "org/name", "commit": COMMIT, **said}
    assert facts(Pin("org/name", COMMIT), folder) == found


@pytest.mark.parametrize(("kind", "its", "is_kept"), [(LLAMA, 77, False), (ROBERTA, 77, True), (ROBERTA, None, False)])
def test_only_a_masked_model_keeps_a_padding_that_is_not_the_tokenizers(tmp_path: Path, kind, its, is_kept) -> None:
    """A causal classifier would read the padding; RoBERTa's positions are counted from its own, if it has one."""
    write_model(tmp_path, kind)
    _set_in_config(tmp_path, pad_token_id=its)
    set_padding(tmp_path)
    assert read_config(tmp_path).pad_token_id == (its if is_kept else Vocabulary.of(load_tokenizer(tmp_path)).pad)


def test_relative_positions_that_would_be_left_out_are_refused(folder: Path) -> None:
    _set_in_config(folder, position_embedding_type="relative_key")
    with pytest.raises(InputError, match=r"position_embedding_type: relative_key is not allowed; expected absolute$"):
        check_model(folder, "org/name", "bert", "family")


@pytest.mark.parametrize("token", ["hf_\u00e9", "hf_a\nb", "hf_\x00"])
def test_a_token_that_no_request_can_carry_is_refused_without_being_shown(monkeypatch, token: str) -> None:
    monkeypatch.setenv("HF_TOKEN", " hf_a \n")
    assert hub_token() == "hf_a"
    monkeypatch.setattr("os.environ", {"HF_TOKEN": token})  # a NUL can come in no other way
    with pytest.raises(InputError, match=r"^HF_TOKEN: the token is not plain text; copy it again$"):
        hub_token()


@pytest.mark.parametrize("seed", [None, 0, 1])
def test_a_copy_has_the_weights_of_its_seed_and_says_so(folder: Path, tmp_path: Path, seed: int | None) -> None:
    """Seed 0 counts too: otherwise the published weights would pass for random ones."""
    target, name, origin = tmp_path / "copy", "bert.embeddings.word_embeddings.weight", PinnedFolder(folder, "0" * 12)
    for path in (target, folder / "LICENSES"):  # a folder is no file of a checkpoint
        path.mkdir()
    weights, query = load_file(folder / "model.safetensors"), "bert.encoder.layer.0.attention.self.query.weight"
    save_file(weights | {name: weights[name] + 1}, folder / "model.safetensors", {"format": "pt"})
    copy_checkpoint(target, InitialCheckpoint(origin, "bert", seed), origin)
    published, copied = (load_file(of / "model.safetensors") for of in (folder, target))
    assert torch.equal(copied[name].float(), published[name].float()) == (seed is None)
    assert read_json(target / FACTS).get("random") == seed
    assert not (target / "LICENSES").exists()
    for other in () if seed is None else (seed, seed + 1):
        draw_weights(target, other)
        drawn = load_file(target / "model.safetensors")
        same = {key for key, weight in copied.items() if torch.equal(drawn[key], weight)}
        assert (same == drawn.keys(), query in same) == (other == seed, other == seed)
        assert "bert.pooler.dense.weight" in drawn  # as the published ones have it


@pytest.mark.parametrize("said", ["Consistency check failed: 3 of 4 bytes", "Not enough disk space. Needed: 1 GiB"])
def test_faults_that_come_without_a_number_are_one_line(said: str) -> None:
    with pytest.raises(InputError, match=f"^org/name: {said}$"), hub_session("org/name"):
        raise OSError(said)


def test_a_proxy_that_is_no_address_is_not_shown_as_it_may_hold_a_password() -> None:
    """A slash in a password ends the address, and what stands before it is taken for a port."""
    said = r"^org/name: HF_ENDPOINT, or a proxy, is not an address$"
    for parse in (urlsplit, httpx.URL):
        with pytest.raises(InputError, match=said), hub_session("org/name"):
            print(parse("http://me:secret/word@proxy:80").port)
