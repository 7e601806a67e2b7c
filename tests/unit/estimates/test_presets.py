"""Models by name."""

import json
from pathlib import Path

import pytest

from retrace.cli.preset import write_presets
from retrace.core.errors import InputError
from retrace.core.settings import build, read_params
from retrace.estimates.architectures import config_of, find_model
from retrace.estimates.parameters import count_parameters, sums
from retrace.models.heads import longest_input, make_config
from retrace.models.settings import ModelSettings
from retrace.tokens.settings import TokenizerSettings
from retrace.tokens.tokenizer import Vocabulary, train_tokenizer
from tests.tiny import TEXT, tiny_pretrained
from tests.toy import ROOT


def test_a_folder_and_the_params_are_models(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert find_model(str(tiny_pretrained(tmp_path, "llama"))).config.model_type == "llama"
    monkeypatch.chdir(ROOT)
    assert find_model(None).config.vocab_size == 3072


@pytest.mark.parametrize("presets", [["params.yaml"], ["params.yaml", "small.yaml"]])
def test_the_preset_has_as_many_rows_of_positions_as_the_model_that_the_study_trains(tmp_path, presets) -> None:
    for name in ("params.yaml", "data/params.yaml", "presets/sample.yaml"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text((ROOT / name).read_text())
    write_presets([ROOT / "studies" / "roberta-small" / name for name in presets], tmp_path)
    params = read_params(tmp_path)
    preset, said = find_model("roberta-small").config, config_of(params)
    more = preset.max_position_embeddings - longest_input(preset)
    length = params["model"]["max_positions"]
    settings = build(TokenizerSettings, {"tokenizer": params["tokenizer"] | {"vocab_size": 300}}, "tokenizer")
    tokenizer = train_tokenizer(settings, lambda: TEXT, "vocab_size")
    trained = make_config(
        "roberta",
        ModelSettings(hidden_size=32, layers=1, heads=2, intermediate_size=32, max_positions=length),
        Vocabulary.of(tokenizer),
    )
    assert more == 2
    assert said.max_position_embeddings == trained.max_position_embeddings == length + more
    ids = ("pad_token_id", "bos_token_id", "eos_token_id")
    assert [[getattr(config, name) for name in ids] for config in (preset, said, trained)] == [[1, 0, 2]] * 3
    if presets == ["params.yaml"]:
        counts = [sums(count_parameters(None, config, lambda *_: None)[1])["total"] for config in (preset, said)]
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
