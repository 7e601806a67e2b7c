"""Operations and memory of an update, known before it, and the bytes of tensors that are alive at once."""

from dataclasses import replace
from itertools import islice
from pathlib import Path
from typing import Any, cast

import numpy as np
import pytest
import torch
from transformers import PreTrainedConfig

from retrace.compute.sharding import data_parallel
from retrace.core.errors import InputError
from retrace.estimates.memory import LiveMemory, Load, Needs, update_needs
from retrace.estimates.needs import pretraining_needs
from retrace.finetuning.method import read_method, round_frozen
from retrace.models.heads import make_config, make_model
from retrace.models.language_model import make_language_model
from retrace.objectives.language_modelling import BlockModelling, Masking, token_loss
from retrace.pretraining.settings import PretrainSettings
from retrace.tokens.tokenizer import Vocabulary
from retrace.training.loop import Training
from retrace.training.optimizer import make_optimizers
from retrace.training.settings import OptimizerSettings
from retrace.training.throughput import count_flops
from tests.counting import make_run
from tests.tiny import FAMILIES, MODEL, tiny_device

VOCABULARY = Vocabulary(120, *range(5))
ADAMW = OptimizerSettings(kind="adamw")


def _transient(needs: Needs) -> int:
    """What the peak has besides weights, gradients and moments: activations, copies in bf16, temporary tensors."""
    return needs.peak - needs.weights - needs.gradients - needs.moments


def _pretraining(config: PreTrainedConfig, blocks: int = 2, **settings: Any) -> Needs:
    recipe = PretrainSettings(epochs=1, batch_size=2, block_size=40, mask_rate=0.3, **settings)
    return pretraining_needs(config, recipe, blocks, bf16=False, attention="eager")


@pytest.mark.parametrize("family", FAMILIES)
def test_planned_operations_are_those_of_training(family: str) -> None:
    config = make_config(family, MODEL, VOCABULARY)
    needs = _pretraining(config)
    model, masking = make_language_model(config, 0, "eager"), None if family == "llama" else Masking(0.3)
    stream = np.random.default_rng(0).integers(5, 120, 2 * 40)
    (batch,) = BlockModelling(stream, VOCABULARY, 40, 2, masking, 1).batches(0)
    part = batch.to(tiny_device())
    counted = count_flops(model, lambda: token_loss(model, part).backward()) / batch.ids.numel()
    assert needs.parameters == sum(weight.numel() for weight in model.parameters())
    assert needs.flops == pytest.approx(counted, rel=0.01)  # causal: the last token of a block is not asked


def test_attention_within_documents_needs_a_mask_for_each_block() -> None:
    config = make_config("llama", MODEL, VOCABULARY)
    recipe = PretrainSettings(epochs=1, batch_size=16, block_size=256, mask_rate=0.3, intra_document_attention=True)
    plain = recipe.model_copy(update={"intra_document_attention": False})
    without, within = (
        pretraining_needs(config, each, 16, bf16=False, attention="sdpa").peak for each in (plain, recipe)
    )
    assert within > without + 16 * 256 * 256
    assert not hasattr(config, "document_start")
    config.document_start = 2  # of a checkpoint that was pretrained so
    assert pretraining_needs(config, plain, 16, bf16=False, attention="sdpa").peak == without


def test_memory_grows_with_blocks_moments_and_processes() -> None:
    config = make_config("modernbert", MODEL, VOCABULARY)
    muon, more, both = _pretraining(config), _pretraining(config, blocks=4), _pretraining(config, optimizer=ADAMW)
    hidden = 2 * (32 * 96 + 32 * 32 + 32 * 128 + 32 * 64)  # matrices of two layers, which Muon gives one moment
    weights = make_language_model(config, 0, "eager").named_parameters()
    others = [name for name, weight in weights if weight.ndim < 2 or ".layers." not in name]
    steps = 4 * len(others)  # AdamW counts its updates for each of the other weights
    assert muon.moments == 4 * (2 * muon.parameters - hidden) + steps
    assert both.moments > muon.moments
    assert (muon.updates, both.updates) == (4 * hidden, 0)
    assert muon.step > muon.weights + muon.moments + 2 * muon.updates, "matrices that are multiplied"
    assert _transient(more) > 1.9 * _transient(muon)
    assert muon.memory(2) == max(muon.besides + muon.gradients, muon.step + muon.gradients - muon.updates)


def test_processes_that_share_a_model_hold_parts_of_it_and_whole_layers_for_a_moment() -> None:
    needs = Needs(
        parameters=100, trained=75, weights=400, flops=6.0, moments=800, passes=1600, besides=1350, layer=20,
        outside=30, gathered=4,
    )  # fmt: skip
    assert (_transient(needs), needs.activations) == (1600 - 400 - 300 - 800, 1350 - 400 - 800)
    assert needs.memory(4) == (400 + 300 + 800) / 4 + 3 * 4 * 20 + 2 * 4 * 30 + 100, "all gradients"
    before = replace(needs, besides=1590)
    assert before.memory(4) == (400 + 800) / 4 + 2 * 4 * 20 + 4 * 30 + 390, "no gradient yet"
    assert before.memory(4) - replace(before, gathered=2).memory(4) == 2 * 2 * 20, "bf16 takes half"
    assert needs.memory(1) == 1600
    stepping = replace(needs, step=400 + 800 + 2 * 200 + 1400, updates=200)
    assert (stepping.peak, stepping.memory(4)) == (3000, (400 + 300 + 800 + 200) / 4 + 1400), "Muon shares its updates"
    whole = [replace(each, gathered=0).memory(4) for each in (needs, stepping)]
    assert whole == [1350 + 300, 3000 + 300 - 200], "all gradients at all times, also those that the step is done with"
    assert needs.checkpoint == 300 + 800, "the trained weights, as large as their gradients, and their moments"
    found = _pretraining(make_config("bert", MODEL, VOCABULARY))
    inner = 4 * (32 * 32 + 32) + 2 * 32 * 64 + 64 + 32 + 4 * 32
    assert (found.layer, found.outside) == (inner, found.parameters - 2 * inner)


@pytest.mark.parametrize("family", ["bert", "llama"])
@pytest.mark.parametrize("method", ["full", "lora", "adapter"])
@pytest.mark.parametrize("bf16", [False, True])
def test_planned_memory_is_that_of_real_tensors(family: str, method: str, bf16: bool) -> None:
    config = make_config(family, MODEL, VOCABULARY)
    tune = read_method({}, method).tune
    needs = update_needs("classifier", config, Load(4, 40, 0, bf16, "eager"), ADAMW, tune)
    ids, mask = torch.full((4, 40), 7), None
    if family == "bert":
        mask = torch.ones(4, 40, dtype=torch.long)
        mask[0, -1] = 0  # with nothing but ones, transformers leaves the mask out
    with LiveMemory() as live:
        model = make_model("classifier", config, 0, "eager").train()
        tune(model, "classifier")
        if bf16 and method != "full":
            round_frozen(model)
        optimizers = make_optimizers(model, ADAMW, 1e-3)
        live.peak = live.now
        for _ in range(2):
            with torch.autocast("cpu", torch.bfloat16, enabled=bf16):
                scores = model(input_ids=ids, attention_mask=mask).logits.float()
            torch.nn.functional.cross_entropy(scores, torch.zeros(4, dtype=torch.long)).backward()
            torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            for each in optimizers:
                each.step()
                each.zero_grad(set_to_none=True)
    assert needs.peak == pytest.approx(live.peak, rel=0.02)


@pytest.mark.parametrize(  # every pair of values occurs
    ("family", "parts", "again"), [("bert", None, True), ("bert", 3, False), ("llama", None, False), ("llama", 3, True)]
)
def test_planned_memory_is_that_of_an_update_in_parts_and_with_layers_computed_again(
    tmp_path: Path, family: str, parts: int | None, again: bool
) -> None:
    """The real tensors are those of the training loop's own updates, batches included."""
    device = replace(tiny_device(), micro_batch=parts, recomputes=again)
    sizes = MODEL.model_copy(update={"layers": 6})
    with LiveMemory() as live:
        run = make_run(family, "language model", tmp_path, "eager", device, sizes)
        training = Training(run, data_parallel(run.model, device))
        training.at.epoch, live.peak = 0, live.now
        list(islice(training.rest_of_epoch(), 2))
    config, scored = cast(Any, run.model).body.config, {"bert": 9, "llama": 28}[family]
    needs = update_needs("language_model", config, Load(8, 32, 8 * scored, False, "eager", parts, again), run.optimizer)
    assert needs.peak == pytest.approx(live.peak, rel=0.03)


def test_most_activations_may_be_there_before_any_gradient() -> None:
    """With two micro-batches, the peak has the activations of one and all gradients, which exist before the second."""
    config = make_config("llama", MODEL.model_copy(update={"layers": 6}), VOCABULARY)
    whole, parts = (
        update_needs("language_model", config, Load(8, 40, 320, False, "eager", most), ADAMW) for most in (None, 4)
    )
    assert whole.besides == whole.peak, "nothing but the last layer's gradients, if any, is there at the peak"
    assert parts.peak == parts.besides + parts.gradients
    assert whole.activations == pytest.approx(2 * parts.activations, rel=0.05)


def test_fused_attention_is_planned_as_on_cuda() -> None:
    """With dropout, a processor would keep weights of (B, H, T, T) and their masks."""
    config = make_config("bert", MODEL.model_copy(update={"dropout": 0.1, "max_positions": 2048}), VOCABULARY)
    loads = [Load(2, *load) for load in ((1024, 2, True, "lean"), (1024, 2, True, "sdpa"), (2048, 2, True, "sdpa"))]
    lean, fused, longer = (update_needs("language_model", config, load, ADAMW) for load in loads)
    assert lean.flops == fused.flops
    assert _transient(lean) > 4 * _transient(fused)
    assert _transient(longer) < 2.1 * _transient(fused)


def test_a_dropout_mask_is_planned_as_on_cuda() -> None:
    """A byte for each element; a processor's takes two in bf16 and four in float32."""
    layers, load = 16, Load(8, 64, 0, True, "sdpa")
    dropping, plain = (
        update_needs("classifier", make_config("bert", sizes, VOCABULARY), load, ADAMW).besides
        for sizes in (MODEL.model_copy(update={"layers": layers, "dropout": rate}) for rate in (0.1, 0.0))
    )
    masks = 2 * layers + 1  # after attention and feed-forward of each layer, and after the embeddings
    assert dropping - plain == pytest.approx(masks * 8 * 64 * MODEL.hidden_size, rel=0.15)


def test_autocast_copies_no_layer_that_gpus_gather_in_bf16() -> None:
    """As `sharding.to_device` has it; there frozen weights are not rounded either."""
    layers, load = 16, Load(8, 64, 0, True, "sdpa")
    config = make_config("bert", MODEL.model_copy(update={"layers": layers}), VOCABULARY)
    sharded = replace(load, sharded=True)
    full, in_bf16 = (update_needs("classifier", config, each, ADAMW) for each in (load, sharded))
    matrices = layers * (4 * 32 * 32 + 2 * 32 * 64)
    assert full.besides - in_bf16.besides == pytest.approx(2 * matrices, rel=0.15)
    assert [each.gathered for each in (load, sharded, replace(sharded, attention="lean"))] == [0, 2, 4]
    lora = update_needs("classifier", config, sharded, ADAMW, read_method({}, "lora").tune)
    assert lora.weights == 4 * lora.parameters


def test_muon_is_planned_with_the_groups_of_matrices_of_cuda() -> None:
    """Where there are few tokens, its temporary tensors are the peak."""
    sizes = MODEL.model_copy(update={"hidden_size": 512, "intermediate_size": 2048, "layers": 6})
    config = make_config("modernbert", sizes, VOCABULARY)
    cpu, gpu = (
        update_needs("language_model", config, Load(1, 8, 2, False, attention), OptimizerSettings(kind="muon"))
        for attention in ("lean", "sdpa")
    )
    largest = 4 * 6 * 512 * 2 * 2048  # bytes of the matrices of one shape, of which there are several copies
    assert _transient(cpu) + largest < _transient(gpu)


@pytest.mark.parametrize(("batch", "most", "planned"), [(16, 15, 8), (32, 24, 16), (12, 8, 6), (8, 3, 3), (8, None, 8)])
def test_planned_micro_batches_are_those_that_run(batch: int, most: int | None, planned: int) -> None:
    assert Load(batch, 8, 0, False, "eager", most).part.batch == planned


def test_an_optimiser_without_weights_is_an_input_error() -> None:
    config, load = make_config("llama", MODEL, VOCABULARY), Load(1, 8, 8, False, "eager")
    with pytest.raises(InputError, match="nothing here for adamw to train"):
        update_needs("language_model", config, load, ADAMW, lambda model, _: model.requires_grad_(False))


def test_the_peak_is_of_what_is_alive_together() -> None:
    with LiveMemory() as live:
        first = torch.zeros(100)
        del first
        view = torch.zeros(50)[:10]
    assert (live.peak, live.now) == (400, 200), "a view keeps its storage"
    del view
    assert live.now == 0


def test_what_the_backward_pass_keeps_counts() -> None:
    weight = torch.ones(1000, requires_grad=True)
    with LiveMemory() as live:
        result = weight.exp().sum()  # the backward pass needs the result of exp
        assert live.now == 4 * 1000 + 4
        result.backward()
        del result
    assert live.now == 4 * 1000, "the gradient"
