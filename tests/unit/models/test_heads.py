import json
import re
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest
import torch
from safetensors.torch import load_file, save_file
from transformers import GPT2Config

from retrace.core.errors import InputError
from retrace.core.settings import build
from retrace.core.weights import parameters_by_module
from retrace.families import llama, roberta
from retrace.models.heads import longest_input, make_model, read_model, set_dropout, text_vector
from retrace.models.settings import ModelSettings
from tests.tiny import FAMILIES, MODEL, tiny_config, tiny_pretrained, tiny_tokenizer


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("head", ["classifier", "spans"])
def test_the_body_comes_from_the_folder_and_the_head_from_the_seed(tmp_path: Path, family: str, head) -> None:
    folder = tiny_pretrained(tmp_path, family)
    one, again, other = (read_model(head, folder, seed, "eager").state_dict() for seed in (1, 1, 2))
    saved = load_file(folder / "model.safetensors")
    torch.testing.assert_close(again, one, rtol=0, atol=0)
    assert [name for name in one if not torch.equal(one[name], other[name])]
    one = {name.replace("transformer.", "model."): weight for name, weight in one.items()}  # of Llama's span head
    shared = one.keys() & saved.keys()
    assert len(shared) > 10
    assert all(torch.equal(one[name], saved[name]) for name in shared)


def test_a_saved_model_does_not_name_code_that_came_with_the_one_it_is_from(tmp_path: Path) -> None:
    path = tiny_pretrained(tmp_path) / "config.json"
    published = json.loads(path.read_text())
    path.write_text(json.dumps({**published, "auto_map": {"AutoModelForMaskedLM": "org/other--modeling.Own"}}))
    read_model("classifier", tmp_path, 1, "eager").save_pretrained(tmp_path / "tuned")
    assert "auto_map" not in json.loads((tmp_path / "tuned/config.json").read_text())


def test_missing_weights_of_the_body_are_an_error(tmp_path: Path) -> None:
    folder = tiny_pretrained(tmp_path)
    weights = load_file(folder / "model.safetensors")
    kept = {name: weight for name, weight in weights.items() if ".layers.1." not in name}
    save_file(kept, folder / "model.safetensors", {"format": "pt"})
    said = rf"weights of the model's body are missing: model\.layers\.1\.\S+ \({len(weights) - len(kept)} in all\)"
    with pytest.raises(InputError, match=said):
        read_model("spans", folder, 1, "eager")


def test_missing_weights_are_named(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"model\.safetensors: no such file"):
        parameters_by_module(tmp_path)


@pytest.mark.parametrize("family", FAMILIES)
def test_parameters_are_those_of_the_model(tmp_path: Path, family: str) -> None:
    model = make_model("language_model", tiny_config(family, tiny_tokenizer()), 0, "eager")
    model.save_pretrained(tmp_path)
    counts = parameters_by_module(tmp_path)
    assert sum(counts.values()) == sum(weight.numel() for weight in model.parameters())
    assert sum(module.split(".")[-1].isdigit() for module in counts) == MODEL.layers


def test_saved_numbers_of_positions_are_no_parameters(tmp_path: Path) -> None:
    """Older versions of transformers saved BERT's position_ids."""
    half = {name: torch.zeros(3, dtype=dtype) for name, dtype in (("a.half", torch.bfloat16), ("a.mask", torch.bool))}
    tensors = {"a.weight": torch.zeros(2, 5), "a.position_ids": torch.arange(7)} | half
    save_file(tensors, tmp_path / "model.safetensors")
    assert parameters_by_module(tmp_path) == {"a": 10 + 3}


@pytest.mark.parametrize("family", FAMILIES)
@torch.no_grad()
def test_the_longest_input_is_read(family: str) -> None:
    config = tiny_config(family, tiny_tokenizer())
    assert longest_input(config) == MODEL.max_positions
    model = make_model("spans", config, 0, "eager").eval()
    ids = torch.full((1, MODEL.max_positions), 7)
    assert model(input_ids=ids).start_logits.shape == (1, MODEL.max_positions)


@pytest.mark.parametrize(
    ("family", "alone", "padded"),
    [("modernbert", [5.0, 6.0], [2.0, 3.0]), ("bert", [1.0, 2.0], [1.0, 2.0]), ("llama", [11.0, 12.0], [3.0, 4.0])],
)
def test_a_text_is_the_mean_the_first_or_the_last_of_its_tokens(
    family: str, alone: list[float], padded: list[float]
) -> None:
    config = tiny_config(family, tiny_tokenizer())
    hidden, ids = torch.tensor([[[1.0, 2.0], [3.0, 4.0], [11.0, 12.0]]]), torch.tensor([[7, 8, 9]])
    assert text_vector(config, hidden, ids, None).tolist() == [alone]
    cut, mask = torch.tensor([[7, 8, config.pad_token_id]]), torch.tensor([[1, 1, 0]])
    assert text_vector(config, hidden, cut, mask).tolist() == [padded]


@torch.no_grad()
def test_a_new_classifier_of_modernbert_starts_near_chance_and_a_saved_one_is_kept(tmp_path: Path) -> None:
    config = tiny_config("modernbert", tiny_tokenizer())
    make_model("language_model", config, 0, "eager").save_pretrained(tmp_path)
    model = read_model("classifier", tmp_path, 1, "eager")
    new = make_model("classifier", config, 1, "eager").get_parameter("classifier.weight")
    weight = model.get_parameter("classifier.weight")
    assert all(0.01 < float(of.std()) < 0.03 for of in (new, weight))
    weight.fill_(0.5)
    model.save_pretrained(tmp_path)
    again = read_model("classifier", tmp_path, 1, "eager", needs_head=True)
    assert torch.equal(again.get_parameter("classifier.weight"), weight)


@pytest.mark.parametrize("key", ["hidden_size", "intermediate_size", "max_positions", "layers"])
def test_sizes_that_torch_cannot_count_are_refused(key: str) -> None:
    given = MODEL.model_dump() | {key: 10**18}
    most = 10_000 if key == "layers" else 2**24
    said = rf"model\.{key}: {10**18} is not allowed; expected a whole number from 1 to {most}$"
    with pytest.raises(InputError, match=said):
        build(ModelSettings, {"model": given}, "model")
    assert getattr(build(ModelSettings, {"model": given | {key: most}}, "model"), key) == most


def test_settings_that_a_family_does_not_have() -> None:
    with pytest.raises(InputError, match=r"model\.kv_heads: 1 is not allowed with family: bert; expected null"):
        tiny_config("bert", tiny_tokenizer(), kv_heads=1)


@pytest.mark.parametrize(
    ("family", "part", "name", "expected"),
    [
        (roberta, "OUTPUTS", "output.dens",
         "one of attention.output.dense, attention.self.key, attention.self.query, attention.self.value, "
         "intermediate.dense, output.dense"),
        (llama, "ATTENTION", "input_layernorm",
         "one of mlp.down_proj, mlp.gate_proj, mlp.up_proj, self_attn.k_proj, self_attn.o_proj, self_attn.q_proj, "
         "self_attn.v_proj"),
    ],
)  # fmt: skip
def test_a_family_whose_file_names_no_matrix_of_its_layers(
    monkeypatch: pytest.MonkeyPatch, family: ModuleType, part: str, name: str, expected: str
) -> None:
    """An adapter would train the head alone, and say nothing."""
    kind = family.__name__.rpartition(".")[2]
    monkeypatch.setattr(family, part, (*getattr(family, part), name))
    said = f"retrace/families/{kind}.py: {part}: {name!r} is not allowed; expected {expected}"
    with pytest.raises(InputError, match=f"^{re.escape(said)}$"):
        make_model("language_model", tiny_config(kind, tiny_tokenizer()), 0, "eager")


def test_a_family_whose_layers_are_not_where_methods_look(monkeypatch: pytest.MonkeyPatch) -> None:
    """GPT-2's list of layers is called h, and they have no nn.Linear."""
    names = {"ATTENTION": ("attn.c_attn",), "OUTPUTS": ("attn.c_proj", "mlp.c_proj")}
    family = SimpleNamespace(OBJECTIVE="causal", make_config=GPT2Config, **names)
    monkeypatch.setattr("retrace.models.heads._load_family", {"gpt2": family}.get)
    said = "retrace/families/gpt2.py: ATTENTION: 'attn.c_attn' is not allowed; expected none, as it has no nn.Linear in"
    with pytest.raises(InputError, match=f"^{re.escape(said)}"):
        make_model("language_model", GPT2Config(vocab_size=120, n_embd=32, n_layer=2, n_head=2), 0, "eager")


@pytest.mark.parametrize("family", ["modernbert", "llama"])
def test_the_base_of_rotary_positions_is_set(family: str) -> None:
    for theta in (None, 1000.0):
        config = tiny_config(family, tiny_tokenizer(), rope_theta=theta)
        assert ("'rope_theta': 1000.0" in str(config.rope_parameters)) == (theta is not None)


@pytest.mark.parametrize(("before", "layers"), [(0.0, 0), (0.1, MODEL.layers)])
def test_modernbert_has_dropout_after_attention_only_if_it_had_some_in_pretraining(before: float, layers: int) -> None:
    model = make_model("classifier", tiny_config("modernbert", tiny_tokenizer(), dropout=before), 0, "eager")
    set_dropout(model, 0.3)
    rates = {name: part.p for name, part in model.named_modules() if isinstance(part, torch.nn.Dropout)}
    assert set(rates.values()) == {0.3}
    assert sum(name.endswith("attn.out_drop") for name in rates) == layers
    assert sum(name.endswith("mlp.drop") for name in rates) == MODEL.layers


@pytest.mark.parametrize("family", FAMILIES)
def test_dropout_and_the_spread_of_the_weights_are_as_set(family: str) -> None:
    """Dropout everywhere, of attention weights too; in Llama of these alone."""
    config = tiny_config(family, tiny_tokenizer(), dropout=0.25, init_std=0.2)
    model = make_model("language_model", config, 1, "eager")
    layers = {part.p for part in model.modules() if isinstance(part, torch.nn.Dropout)}
    of_attention = {part.attention_dropout for part in model.modules() if hasattr(part, "attention_dropout")}
    assert layers == (set() if family == "llama" else {0.25})
    assert of_attention <= {0.25}
    assert of_attention or family in ("bert", "roberta")  # where it is a layer
    weights: Any = model.get_input_embeddings().weight
    assert weights.std().item() == pytest.approx(0.2, rel=0.2)


def test_heads_of_queries_share_keys_and_values() -> None:
    for heads, width in ((None, MODEL.hidden_size), (1, MODEL.hidden_size // MODEL.heads)):
        model = make_model("classifier", tiny_config("llama", tiny_tokenizer(), kv_heads=heads), 1, "eager")
        assert len(model.get_parameter("model.layers.0.self_attn.k_proj.weight")) == width


def test_a_tuned_classifier_of_other_classes_is_refused(tmp_path: Path) -> None:
    """Its head would be drawn anew, and the predictions would be random."""
    config = tiny_config("modernbert", tiny_tokenizer())
    make_model("classifier", config, 0, "eager", ("a", "b", "c")).save_pretrained(tmp_path)
    with pytest.raises(InputError, match=r"classifier\.\w+ does not have the size in config\.json$"):
        read_model("classifier", tmp_path, 1, "eager", ("a", "b"), needs_head=True)
