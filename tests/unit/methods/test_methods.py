"""What each method trains, what it saves, and that this brings the same model back."""

from pathlib import Path
from typing import Any

import pytest
import torch
from peft import PeftModel
from peft.tuners.lora import LoraLayer
from safetensors.torch import load_file
from transformers import PreTrainedModel

from retrace.compute.sharding import gather_weights, recompute_layers
from retrace.core.errors import InputError
from retrace.finetuning.method import Adapted, has_frozen, load_trained, read_method, round_frozen, save_trained
from retrace.methods import lora
from retrace.models.heads import Head, in_body, layer_matrices, make_model, read_model, token_embeddings
from retrace.tasks.question_answering.generative import Generator
from tests.counting import Dispatched
from tests.tiny import FAMILIES, MODEL, tiny_config, tiny_pretrained, tiny_tokenizer
from tests.toy import shown_plugin

PARTS = ("frozen", "lora", "adapter")
BESIDE_EMBEDDINGS = {"lora": {"rank": 4, "embeddings": True}, "adapter": {"embedding_rank": 4}}
HIDDEN, LAYERS = MODEL.hidden_size, MODEL.layers
IDS = torch.tensor([[2, 20, 21, 22, 23, 3]])


def _start(method: str, folder: Path, head: Head = "classifier", seed: int = 1, **settings: Any) -> PreTrainedModel:
    return read_method({"methods": {method: settings}}, method).start(head, folder, seed, "eager").eval()


def _answer(model: PreTrainedModel) -> torch.Tensor:
    with torch.no_grad():
        return model(input_ids=IDS).logits


def _trained(model: PreTrainedModel) -> dict[str, torch.nn.Parameter]:
    return {name: weight for name, weight in model.named_parameters() if weight.requires_grad}


def _count(model: PreTrainedModel, part: str) -> int:
    return sum(weight.numel() for name, weight in _trained(model).items() if part in name)


def _update(model: PreTrainedModel, labels: torch.Tensor, lr: float = 1.0) -> None:
    """One step of what is trained."""
    optimizer = torch.optim.SGD(_trained(model).values(), lr=lr)
    optimizer.zero_grad()
    model(input_ids=IDS, labels=labels).loss.backward()
    optimizer.step()


def test_full_starts_from_the_pretrained_body_and_scratch_does_not(tmp_path: Path) -> None:
    folder, name = tiny_pretrained(tmp_path), "model.layers.0.attn.Wqkv.weight"
    saved, pretrained = load_file(folder / "model.safetensors"), _start("full", folder).state_dict()
    random, again, other = (_start("scratch", folder, seed=seed).state_dict() for seed in (1, 1, 2))
    assert torch.equal(pretrained[name], saved[name])
    assert pretrained.keys() == random.keys()
    assert torch.equal(random[name], again[name])
    assert not any(torch.equal(random[name], of[name]) for of in (saved, other))


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize(("method", "settings"), [*((part, {}) for part in PARTS), *BESIDE_EMBEDDINGS.items()])
def test_the_trained_part_is_loaded_back(tmp_path: Path, method: str, settings: dict[str, Any], family: str) -> None:
    folder = tiny_pretrained(tmp_path / "pretrained", family)
    model = _start(method, folder, **settings)
    before, weights = _answer(model), {name: weight.clone() for name, weight in model.named_parameters()}
    for _ in range(2):  # one factor of a product starts at 0, so the other moves in the second update only
        _update(model, torch.tensor([1]))
    moved = {name for name, weight in model.named_parameters() if not torch.equal(weight, weights[name])}
    assert moved <= _trained(model).keys() < weights.keys()
    assert {name for name in weights if "lora_embedding" in name} <= moved
    assert has_frozen(model)
    assert not torch.equal(_answer(model), before)
    save_trained(gather_weights(model, only_trained=True), tmp_path)
    again = _start(method, folder, **settings)
    load_trained(again, tmp_path)
    assert torch.equal(_answer(again), _answer(model))
    with pytest.raises(InputError, match="do not match this method and model"):
        load_trained(_start("frozen" if method == "lora" else "lora", folder), tmp_path)


@pytest.mark.parametrize("rank", [None, 4])
@pytest.mark.parametrize("family", FAMILIES)
def test_adapters_are_two_per_layer_and_at_first_change_little(tmp_path: Path, family: str, rank: int | None) -> None:
    """Beside the token embeddings there may be a product, which takes what a table of its rank takes."""
    folder, narrow = tiny_pretrained(tmp_path, family), HIDDEN // 4
    model, plain = _start("adapter", folder, reduction=4, embedding_rank=rank), _start("full", folder)
    added = [part.adapter for part in model.modules() if isinstance(part, Adapted)]
    sizes = [sum(weight.numel() for weight in adapter.parameters()) for adapter in added]
    assert sizes == [2 * HIDDEN * narrow + HIDDEN + narrow] * (2 * LAYERS)
    table = plain.get_parameter(f"{token_embeddings(plain)}.weight")
    assert _count(model, "lora_embedding") == (rank or 0) * sum(table.shape)
    assert [part.scaling for part in model.modules() if isinstance(part, LoraLayer)] == [{"default": 1.0}] * bool(rank)
    torch.testing.assert_close(_answer(model), _answer(plain), atol=0.02, rtol=0.02)


@pytest.mark.parametrize("embeddings", [False, True])
@pytest.mark.parametrize("family", FAMILIES)
def test_lora_starts_as_the_pretrained_model(tmp_path: Path, family: str, embeddings: bool) -> None:
    folder = tiny_pretrained(tmp_path, family)
    model, plain = _start("lora", folder, rank=4, embeddings=embeddings), _start("full", folder)
    torch.testing.assert_close(_answer(model), _answer(plain), atol=0.02 * embeddings, rtol=0)
    beside = [*layer_matrices(plain, "ATTENTION"), *([token_embeddings(plain)] if embeddings else [])]
    expected = sum(4 * sum(plain.get_parameter(f"{name}.weight").shape) for name in beside)
    assert _count(model, "lora_") == expected


@pytest.mark.parametrize("tied", [True, False])
def test_a_language_models_head_is_pretrained(tmp_path: Path, tied: bool) -> None:
    folder = _causal(tmp_path, tied)
    trained = {method: set(_trained(_start(method, folder, "language_model"))) for method in ("full", *PARTS)}
    assert ("lm_head.weight" in trained["full"]) == (not tied)
    assert trained["frozen"] == {"lm_head.weight"}
    assert all("lora_" in name for name in trained["lora"])
    assert all(".adapter." in name for name in trained["adapter"])


@pytest.mark.parametrize("method", ["full", "lora"])
def test_a_checkpoint_without_a_language_models_head_is_refused(tmp_path: Path, method: str) -> None:
    """As a classifier is; its answers would come from random weights, which LoRA leaves as they are."""
    folder = _causal(tmp_path, tied=False)
    read_model("classifier", folder, 1, "eager", ("no", "yes")).save_pretrained(folder)
    with pytest.raises(InputError, match=r"weights of the model's head are missing: lm_head\.weight \(1 in all\)"):
        _start(method, folder, "language_model")
    read_model("language_model", _causal(tmp_path / "tied", tied=True), 1, "eager", needs_head=True)


@pytest.mark.parametrize("tied", [True, False])
@pytest.mark.parametrize("method", PARTS)
def test_the_trained_part_of_a_language_model_is_loaded_back(tmp_path: Path, method: str, tied: bool) -> None:
    """To the same scores, and so to the same text, while what it reads stays as it was pretrained."""
    folder = _causal(tmp_path, tied)
    model, again = (_start(method, folder, "language_model") for _ in range(2))
    embeddings, before = model.get_parameter("model.embed_tokens.weight").clone(), _written(model)
    for _ in range(5):
        _update(model, IDS, lr=3.0)
    assert torch.equal(model.get_parameter("model.embed_tokens.weight"), embeddings)
    save_trained(gather_weights(model, only_trained=True), tmp_path)
    assert torch.equal(_written(again), before)
    load_trained(again, tmp_path)
    assert not torch.equal(_written(again), before)
    assert torch.equal(_written(again), _written(model))


def _causal(folder: Path, tied: bool) -> Path:
    """A pretrained Llama whose head shares the weights of the embeddings, or has its own."""
    config = tiny_config("llama", tiny_tokenizer())
    config.tie_word_embeddings = tied
    (folder / "pretrained").mkdir(parents=True)
    make_model("language_model", config, 0, "eager").save_pretrained(folder / "pretrained")
    return folder / "pretrained"


@torch.no_grad()
def _written(model: PreTrainedModel) -> torch.Tensor:
    return Generator(model).generate(IDS, torch.ones_like(IDS), 6, 3)


@pytest.mark.parametrize("method", BESIDE_EMBEDDINGS)
def test_a_language_models_embeddings_get_no_product(tmp_path: Path, method: str) -> None:
    said = rf"^params.yaml: methods.{method}.embedding.*is not allowed with answers: generative"
    with pytest.raises(InputError, match=said):
        _start(method, _causal(tmp_path, True), "language_model", **BESIDE_EMBEDDINGS[method])


def test_targets_name_the_matrices(tmp_path: Path) -> None:
    model = _start("lora", tiny_pretrained(tmp_path), targets=("Wi",))
    assert {name.split(".")[-4] for name in _trained(model) if "lora_" in name} == {"Wi"}
    said = r"^params.yaml: methods.lora.targets: 'Wii' is not allowed; expected names of matrices, such as attn"
    with pytest.raises(InputError, match=said):
        _start("lora", tiny_pretrained(tmp_path), targets=("Wi", "Wii"))
    for module in ("attn_norm", "attn", "layers"):
        with pytest.raises(InputError, match=f"targets: '{module}' is not allowed; expected names of matrices"):
            _start("lora", tiny_pretrained(tmp_path), targets=(module,))


@pytest.mark.filterwarnings("ignore:`is_gradient_checkpointing` is deprecated:FutureWarning")  # which peft asks for
@pytest.mark.parametrize("family", ["bert", "roberta"])
def test_targets_are_matrices_of_the_body_only_and_peft_loads_them(tmp_path: Path, family: str) -> None:
    folder = tiny_pretrained(tmp_path / "pretrained", family)
    model = _start("lora", folder, targets=("dense",))
    assert all(in_body(model, name) for name in _trained(model) if "lora_" in name)
    _update(model, torch.tensor([1]))
    lora.save_adapter(model, "classifier", lora.Settings(targets=("dense",)), str(folder), None, tmp_path)
    loaded: Any = PeftModel.from_pretrained(read_model("classifier", folder, 9, "eager"), str(tmp_path))
    assert torch.allclose(_answer(loaded.eval()), _answer(model), atol=1e-6)


def test_the_tasks_dropout_is_not_loras(tmp_path: Path) -> None:
    method = read_method({"methods": {"lora": {"dropout": 0.25}}}, "lora")
    model = method.start("classifier", tiny_pretrained(tmp_path), 0, "eager", dropout=0.5)
    rates = {("lora_" in name, part.p) for name, part in model.named_modules() if isinstance(part, torch.nn.Dropout)}
    assert rates == {(True, 0.25), (False, 0.5)}


def test_a_folder_without_trained_weights_is_an_input_error(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"trained\.safetensors: no such file"):
        load_trained(torch.nn.Linear(1, 1), tmp_path)


@pytest.mark.parametrize("head", ["classifier", "spans"])
@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("method", PARTS)
def test_storing_frozen_matrices_in_bf16_changes_no_bit(tmp_path: Path, method: str, family: str, head: Head) -> None:
    """Neither in the scores nor in the gradients: autocast would round the matrices to the same values."""
    folder = tiny_pretrained(tmp_path, family)
    plain, rounded = (_start(method, folder, head) for _ in range(2))
    round_frozen(rounded)
    weights = dict(rounded.named_parameters())
    halved = {name for name, weight in weights.items() if weight.dtype == torch.bfloat16}
    for part in ("ATTENTION", "OUTPUTS"):
        assert all(any(name.startswith(matrix) for name in halved) for matrix in layer_matrices(plain, part))
    assert {weights[name].dtype for name in _trained(rounded)} == {torch.float32}
    seen = []
    for model in (plain, rounded):
        with torch.autocast("cpu", torch.bfloat16):
            output = model(input_ids=IDS)
        scores = output.logits if head == "classifier" else output.start_logits + output.end_logits
        scores.float().square().sum().backward()
        seen.append([scores, *(weight.grad for weight in _trained(model).values())])
    assert all(torch.equal(one, other) for one, other in zip(*seen, strict=True))


def test_layers_computed_again_give_a_frozen_body_no_gradient_and_lora_its_own(tmp_path: Path) -> None:
    """transformers makes the embeddings' output need a gradient, for which a frozen body would keep activations."""
    folder = tiny_pretrained(tmp_path)
    frozen, plain, again = (_start(method, folder) for method in ("frozen", "lora", "lora"))
    for model in (frozen, again):
        recompute_layers(model)
    body: Any = frozen.base_model
    assert not body(input_ids=IDS).last_hidden_state.requires_grad
    found = []
    for model in (plain, again):
        model.train()(input_ids=IDS, labels=torch.tensor([1])).loss.backward()
        found.append([weight.grad for weight in _trained(model).values()])
    assert all(torch.equal(one, other) for one, other in zip(*found, strict=True))


def test_the_update_is_scaled_by_alpha_over_rank(tmp_path: Path) -> None:
    model = _start("lora", tiny_pretrained(tmp_path), rank=4, alpha=12.0)
    name = layer_matrices(make_model("classifier", model.config, 0, "eager"), "ATTENTION")[0]
    part: Any = model.get_submodule(name)
    below, above = part.lora_A["default"].weight, part.lora_B["default"].weight
    torch.nn.init.normal_(above, generator=torch.Generator().manual_seed(1))
    given = torch.randn(3, HIDDEN, generator=torch.Generator().manual_seed(2))
    with torch.no_grad():
        torch.testing.assert_close(
            part(given) - part.base_layer(given), 3 * given @ below.T @ above.T, atol=1e-5, rtol=1e-4
        )


def test_states_in_bf16_stay_so_for_the_update(tmp_path: Path) -> None:
    """peft would make them float32, of which autocast would make bf16 again."""
    model = _start("lora", tiny_pretrained(tmp_path))
    part: Any = model.get_submodule("model.layers.0.attn.Wqkv")
    with torch.autocast("cpu", torch.bfloat16), Dispatched() as found:
        part(torch.ones(2, HIDDEN, dtype=torch.bfloat16))
    assert found.casts == 3, "of the matrix and of the update's two factors"


def test_an_adapter_is_a_bottleneck_with_swish_beside_a_skip_connection() -> None:
    """Houlsby et al. 2019, figure 2, with swish between the projections."""
    adapted = Adapted(torch.nn.Linear(6, 8), 4)
    layers: Any = adapted.adapter
    down, up = layers["down"], layers["up"]
    for layer in (down, up):
        torch.nn.init.normal_(layer.weight)
    given = torch.randn(5, 6)
    hidden = adapted.matrix(given)
    narrow = hidden @ down.weight.T
    torch.testing.assert_close(adapted(given), hidden + (narrow * narrow.sigmoid()) @ up.weight.T)


@pytest.mark.parametrize(
    ("family", "of_body", "of_head"),
    [("bert", 1 + 8 * LAYERS, ("bert.pooler.", "classifier.")), ("modernbert", 0, ("head.", "classifier."))],
)
def test_the_method_that_the_docs_show(tmp_path: Path, family: str, of_body: int, of_head: tuple[str, ...]) -> None:
    """A layer of BERT has six matrices and two norms, its embeddings a norm, all with a bias; ModernBERT has none."""
    method = shown_plugin("Adding a method")
    model = read_model("classifier", tiny_pretrained(tmp_path, family), 1, "eager")
    method.tune(model, "classifier", method.Settings())
    biases = [name for name in _trained(model) if not name.startswith(of_head)]
    assert len(biases) == of_body
    assert all(name.endswith(".bias") for name in biases)
    assert {name for name, _ in model.named_parameters() if name.startswith(of_head)} <= _trained(model).keys()
