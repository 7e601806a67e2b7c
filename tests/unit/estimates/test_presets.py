"""Models by name."""

import json
from pathlib import Path

import pytest

from retrace.cli.settings import write_presets
from retrace.core.errors import InputError
from retrace.core.settings import read_params
from retrace.estimates.architectures import config_of, count_parameters, find_model, sums
from tests.tiny import tiny_pretrained
from tests.toy import ROOT


def test_a_folder_and_the_params_are_models(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert find_model(str(tiny_pretrained(tmp_path, "llama"))).config.model_type == "llama"
    monkeypatch.chdir(ROOT)
    assert find_model(None).config.vocab_size == 3072


def test_the_preset_of_a_study_is_the_model_that_it_trains(tmp_path: Path) -> None:
    for name in ("params.yaml", "data/params.yaml", "presets/sample.yaml"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text((ROOT / name).read_text())
    write_presets([ROOT / "studies" / "roberta-small" / "params.yaml"], tmp_path)
    preset, trained = find_model("roberta-small").config, config_of(read_params(tmp_path))
    for name in ("max_position_embeddings", "pad_token_id", "bos_token_id", "eos_token_id"):
        assert getattr(preset, name) == getattr(trained, name)
    counts = [sums(count_parameters(None, config)[1])["total"] for config in (preset, trained)]
    assert counts == [22_829_056 + 512] * 2


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
