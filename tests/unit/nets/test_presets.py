"""Models by name."""

import json
from pathlib import Path

import pytest

from stages.harness.errors import InputError
from stages.nets.presets import find_model
from tests.tiny import tiny_pretrained
from tests.toy import ROOT


def test_a_folder_and_the_params_are_models(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert find_model(str(tiny_pretrained(tmp_path, "llama"))).config.model_type == "llama"
    monkeypatch.chdir(ROOT)
    assert find_model(None).config.vocab_size == 3072


def test_what_is_no_model_is_an_input_error(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="neither a folder nor one of the presets bert-base, llama"):
        find_model("bert-huge")
    with pytest.raises(InputError, match=r"config\.json: no such file"):
        find_model(str(tmp_path))
    (tmp_path / "config.json").write_text("{")
    with pytest.raises(InputError, match=r"config\.json: "):
        find_model(str(tmp_path))
    (tmp_path / "config.json").write_text(json.dumps({"model_type": "gpt2"}))
    with pytest.raises(InputError, match="model_type: 'gpt2' is not allowed; expected one of bert, llama"):
        find_model(str(tmp_path))
