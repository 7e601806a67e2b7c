"""Models by name; counts as reports print them and as worked by hand, and every difference of a formula named."""

import shutil
from pathlib import Path
from typing import Any

import pytest

from retrace.cli.settings import write_presets
from retrace.core.errors import InputError
from retrace.core.settings import plugin_names, read_params
from retrace.estimates import architectures
from retrace.estimates.architectures import closed_form, count_parameters, described, find_model, rows, sums
from retrace.finetuning.method import read_method
from retrace.models.heads import Head, make_config
from retrace.tokens.tokenizer import Vocabulary
from tests.tiny import FAMILIES, MODEL, tiny_pretrained
from tests.toy import ROOT, copy_settings

SMALL = find_model("roberta-small").config


TOTALS = [
    ("bert-base", None, 109_482_240, {}),
    ("bert-base", "classifier", 109_483_778, {"classifier": 1_538}),
    ("bert-base", "spans", 108_893_186, {"pooler": -590_592, "qa_outputs": 1_538}),
    ("llama-3.2-1b", "classifier", 1_235_814_400 + 4_096, {"score": 4_096}),
    ("llama-3.2-1b", "spans", 1_235_814_400 + 4_098, {"qa_outputs": 4_098}),
    ("llama-3.2-1b", "language_model", 1_235_814_400, {}),
    ("roberta-small", None, 22_829_056 + 512, {"embeddings.token_type_embeddings": 512}),
    ("roberta-base", None, 124_645_632 - 590_592, {"embeddings.token_type_embeddings": 768}),  # no pooler
    ("scibert", None, 109_482_240 + (31_090 - 30_522) * 768, {}),
]


@pytest.mark.parametrize(("architecture", "head", "expected", "differences"), TOTALS)
def test_totals_of_the_architectures(
    architecture: str, head: Head | None, expected: int, differences: dict[str, int]
) -> None:
    config = find_model(architecture).config
    _, counts = count_parameters(head, config)
    form = closed_form(config, counts)
    assert form is not None
    assert (sums(counts)["total"], form.differences) == (expected, differences)


@pytest.mark.parametrize("architecture", [name for name in sorted(architectures._architectures()) if name != "scibert"])
def test_what_was_published_comes_to_the_count_by_its_differences(architecture: str) -> None:
    model = find_model(architecture)
    total = sums(count_parameters(None, model.config)[1])["total"]
    assert {entry.total + sum(entry.differences.values()) for entry in model.published} == {total}


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("head", [None, "classifier", "spans", "language_model"])
@pytest.mark.parametrize("method", ["full", "lora", "adapter"])
def test_no_difference_goes_unnamed(family: str, head: Head | None, method: str) -> None:
    config = make_config(family, MODEL, Vocabulary(120, *range(5)))
    _, counts = count_parameters(head, config, read_method({}, method).tune)
    form: Any = closed_form(config, counts)
    named = [more for part, more in form.differences.items() if "lora_" in part or ".adapter" in part]
    assert sum(named) == sums(counts)["added"]
    assert not {term.name for term in form.terms} - {"pooler"} & form.differences.keys()


def test_a_family_may_have_no_formula() -> None:
    config: Any = make_config("bert", MODEL, Vocabulary(120, *range(5)))
    config.model_type = "electra"
    assert closed_form(config) is None


def test_a_module_is_a_matrix_with_its_bias_and_a_layer_all_of_its_modules() -> None:
    _, counts = count_parameters("classifier", SMALL, read_method({}, "frozen").tune)
    modules, layers = rows(counts, "module"), rows(counts, "layer")
    query, classes = ("roberta.encoder.layer.0.attention.self.query", 512 * 512 + 512, 0), 2 * 512 + 2
    assert {query, ("classifier.out_proj", classes, classes)} <= {*modules}
    assert ("roberta.encoder.layer.0", 1_577_984, 0) in layers
    assert sum(size for _, size, _ in modules) == sum(size for _, size, _ in layers) == sums(counts)["total"]


def test_what_a_method_added_and_what_the_head_adds_are_told_apart() -> None:
    method = read_method({"methods": {"lora": {"rank": 4, "targets": ["query"]}}}, "lora")
    added = 4 * 4 * (512 + 512)  # 4 layers, rank 4
    trainable = added + 2 * 512 + 2
    assert sums(count_parameters("spans", SMALL, method.tune)[1]) == {
        "total": 22_829_568 + trainable, "trainable": trainable, "frozen": 22_829_568,
        "head_weights": 2 * 512, "head_biases": 2, "added": added,
    }  # fmt: skip


def test_a_folder_and_the_params_are_models(tmp_path: Path) -> None:
    assert find_model(str(tiny_pretrained(tmp_path, "llama"))).config.model_type == "llama"
    assert described(read_params(ROOT)).vocab_size == 3072


def test_the_preset_of_a_study_is_the_model_that_it_trains(tmp_path: Path) -> None:
    copy_settings(tmp_path)
    shutil.copytree(ROOT / "presets", tmp_path / "presets")
    write_presets([ROOT / "studies/roberta-small/params.yaml"], tmp_path)
    trained = described(read_params(tmp_path))
    for name in ("max_position_embeddings", "pad_token_id", "bos_token_id", "eos_token_id"):
        assert getattr(SMALL, name) == getattr(trained, name)
    assert sums(count_parameters(None, trained)[1])["total"] == 22_829_056 + 512


def test_what_is_no_model_is_an_input_error(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"config\.json: no such file"):
        find_model(str(tmp_path))
    known = ", ".join(plugin_names("retrace.families"))
    unknown = f"model_type: 'gpt2' is not allowed; expected one of {known}"
    for config, said in (("{", r"config\.json:1:2: not json"), ('{"model_type": "gpt2"}', unknown)):
        (tmp_path / "config.json").write_text(config)
        with pytest.raises(InputError, match=said):
            find_model(str(tmp_path))
