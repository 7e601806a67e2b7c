from contextlib import nullcontext
from dataclasses import replace
from itertools import pairwise
from typing import cast

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from retrace.compute.device import Device
from retrace.compute.tensors import seeded
from retrace.core.errors import InputError
from retrace.finetuning.run import bucketed
from retrace.models.language_model import LanguageModel, make_language_model
from retrace.objectives.language_modelling import (
    IGNORED,
    LabelledBatch,
    Masking,
    mask_blocks,
    masked_batches,
    mean_loss,
    next_tokens,
    sliding_batches,
    token_loss,
)
from retrace.perplexity.losses import Passage, document_losses, pseudo_losses, sample_passages
from retrace.perplexity.measures import figures_of
from retrace.tokens.settings import TokenizerSettings
from retrace.tokens.tokenizer import Vocabulary, token_id, train_tokenizer, word_edges
from retrace.training.loop import Epoch, Run, train
from retrace.training.optimizer import Muon, make_optimizers, rate_factor, set_rate
from retrace.training.settings import OptimizerSettings
from retrace.training.throughput import count_flops
from tests.sharded import STREAM, TOKENIZER, VOCABULARY, start
from tests.tiny import tiny_config, tiny_device


def _model() -> LanguageModel:
    return make_language_model(tiny_config("modernbert", TOKENIZER), 0, "eager")


def test_the_rate_rises_stays_and_falls() -> None:
    recipe, falling = (OptimizerSettings(warmup_ratio=w, decay_start=d) for w, d in ((0.1, 0.5), (0.0, 0.0)))
    rates = [rate_factor(recipe, step / 20, updates=20) for step in range(21)]
    assert rates == pytest.approx([0.0, 0.5, *[1.0] * 9, 0.9, 0.8, 0.7, 0.6, 0.5, 0.4, 0.3, 0.2, 0.1, 0.0])
    assert [rate_factor(falling, share, 4) for share in (0.0, 0.25, 1.0)] == [1.0, 0.75, 0.0]
    recipe = OptimizerSettings(warmup_ratio=0.05)
    assert [rate_factor(recipe, 0.0, updates) for updates in (1, 20, 21)] == [1.0, 1.0, 0.0], "no warm-up of one"


@given(st.lists(st.integers(1, 50), min_size=1, max_size=200), st.integers(1, 9))
def test_buckets_hold_every_example_once(lengths: list[int], size: int) -> None:
    batches = bucketed(lengths, size, seeded(0, "x"))
    assert sorted(index for batch in batches for index in batch) == list(range(len(lengths)))
    assert max(map(len, batches)) <= size


def test_buckets_waste_little_padding() -> None:
    lengths = torch.randint(5, 60, (2000,), generator=seeded(0, "lengths")).tolist()
    batches = bucketed(lengths, 16, seeded(0, "x"))
    padded = sum(len(batch) * max(lengths[i] for i in batch) for batch in batches)
    assert sum(lengths) / padded > 0.97


@given(st.integers(8, 64), st.integers(5, 90), st.integers(0, 99))
@settings(max_examples=50)
def test_a_fixed_share_is_masked_and_never_a_special_token(length: int, percent: int, seed: int) -> None:
    generator = torch.Generator().manual_seed(seed)
    blocks = torch.randint(0, VOCABULARY.size, (4, length), generator=generator)
    masked = mask_blocks(blocks, Masking(percent / 100), VOCABULARY, generator)
    chosen = masked.labels != IGNORED
    ordinary = ~torch.isin(blocks, torch.tensor(VOCABULARY.special))
    counts = torch.tensor([max(1, real * percent // 100) for real in (blocks != VOCABULARY.pad).sum(1).tolist()])
    assert (chosen.sum(1) == torch.minimum(counts, ordinary.sum(1))).all()
    assert torch.equal(masked.ids, torch.where(chosen, cast(int, VOCABULARY.mask), blocks))
    assert (masked.labels[chosen] == blocks[chosen]).all()
    assert not (chosen & ~ordinary).any()


@given(st.integers(8, 64), st.integers(10, 60), st.integers(0, 99))
@settings(max_examples=50)
def test_words_are_masked_as_a_whole(length: int, percent: int, seed: int) -> None:
    generator = torch.Generator().manual_seed(seed)
    blocks = torch.randint(5, VOCABULARY.size, (4, length), generator=generator)
    continues = torch.arange(VOCABULARY.size) % 3 == 0
    masking = Masking(percent / 100, continues=continues)
    chosen = mask_blocks(blocks, masking, VOCABULARY, generator).labels != IGNORED
    count = max(1, length * percent // 100)
    for block, here in zip(blocks, chosen, strict=True):
        starts = [0, *(at for at in range(1, length) if not continues[block[at]]), length]
        words = [here[start:end] for start, end in pairwise(starts)]
        longest = max(len(word) for word in words)
        if longest <= count:
            assert all(word.all() or not word.any() for word in words)
            assert count - longest < here.sum() <= count
        assert here.any()


def test_a_word_after_a_line_break_is_masked_without_the_one_before() -> None:
    lines = ["the river of the town .\nthe ale\tof the hall"] * 60
    tokenizer = train_tokenizer(TokenizerSettings(kind="bpe", vocab_size=282), lambda: lines)
    continues, closes = map(torch.tensor, word_edges(tokenizer))
    ids = torch.tensor(tokenizer.encode_documents(lines))
    masking = Masking(0.3, continues=continues, closes=closes)
    chosen = mask_blocks(ids, masking, Vocabulary.of(tokenizer), seeded(0, "masks")).labels != IGNORED
    for letter in "Ċĉ":
        (at,) = torch.nonzero(ids[0] == token_id(tokenizer, letter))[:, 0].tolist()
        neighbours = [(chosen[:, at] == chosen[:, at + step]).float().mean().item() for step in (-1, 1)]
        assert all(same < 0.8 for same in neighbours)
        assert chosen[:, at].any()


def test_berts_masks_are_mostly_masks_and_some_are_any_token_but_a_special_one() -> None:
    """Of 4,000: 8 of 10 become the mask, 1 stays the same, and 1 is one of four tokens, which may be the same."""
    vocabulary = Vocabulary(9, 8, 3, 0, 2, 4)
    masked = mask_blocks(torch.ones((200, 40), dtype=torch.int64), Masking(0.5, "80-10-10"), vocabulary, seeded(0, ""))
    assert (masked.ids[masked.labels == IGNORED] == 1).all()
    ids, counts = masked.ids[masked.labels == 1].unique(return_counts=True)
    assert ids.tolist() == [1, vocabulary.mask, 5, 6, 7]
    assert counts[:2].tolist() == pytest.approx([500, 3200], abs=80)
    assert counts[2:].tolist() == pytest.approx([100] * 3, abs=30)


def test_each_epoch_is_masked_anew_and_reproducibly() -> None:
    _, objective = start("modernbert", False, tiny_device())
    one, again, two = (list(objective.batches(epoch)) for epoch in (1, 1, 2))
    assert len(one) == len(two) == objective.steps
    assert all(torch.equal(a.ids, b.ids) for a, b in zip(one, again, strict=True))
    assert not torch.equal(one[0].labels, two[0].labels)


def test_muon_takes_the_hidden_matrices_and_adamw_the_rest() -> None:
    model = _model()
    adamw, muon = make_optimizers(model, OptimizerSettings(muon_lr_factor=10), 0.01)
    hidden = {id(weight) for weight in muon.param_groups[0]["params"]}
    names = {name for name, weight in model.named_parameters() if id(weight) in hidden}
    parts = ("attn.Wqkv", "attn.Wo", "mlp.Wi", "mlp.Wo")
    assert names == {f"body.model.layers.{layer}.{part}.weight" for layer in (0, 1) for part in parts}
    assert len(adamw.param_groups[0]["params"]) + len(hidden) == len(list(model.parameters()))
    set_rate([adamw, muon], 0.5)
    assert [group["lr"] for o in (adamw, muon) for group in o.param_groups] == [0.005, 0.05]
    assert len(make_optimizers(model, OptimizerSettings(kind="adamw"), 0.01)) == 1


def test_muon_is_alone_where_only_hidden_matrices_are_trained() -> None:
    model = _model()
    for name, weight in model.named_parameters():
        weight.requires_grad_(".layers." in name and weight.ndim == 2)
    (muon,) = make_optimizers(model, OptimizerSettings(), 0.01)
    assert isinstance(muon, Muon)
    model.requires_grad_(False)
    with pytest.raises(ValueError, match="empty parameter list"):
        make_optimizers(model, OptimizerSettings(), 0.01)


def test_a_maximum_of_updates_cuts_an_epoch_short() -> None:
    seen: list[Epoch] = []
    model, objective = start("modernbert", False, tiny_device())
    run = Run("test", model, objective, tiny_device(), OptimizerSettings(), 0.01, 9, objective.steps + 1)
    speed = train(run, lambda epoch, meter: seen.append(epoch))
    assert [(epoch.number, epoch.updates) for epoch in seen] == [(0, 0), (1, objective.steps), (2, objective.steps + 1)]
    assert speed.tokens == (objective.steps + 1) * 8 * 32
    assert [update for update, _ in speed.points] == [*range(1, objective.steps + 2)], "few updates: each is a point"
    by_update = [loss for _, loss in speed.points]
    assert sum(by_update[:-1]) / objective.steps == pytest.approx(seen[1].loss, rel=0.02)
    assert by_update[-1] == pytest.approx(seen[2].loss)


def test_the_operations_of_a_step_are_those_of_its_products() -> None:
    """A masked step of a two-layer ModernBERT: hidden 32, feed-forward 64 with a gate, 6 of 16 tokens masked."""
    model = _model().train()
    blocks = torch.from_numpy(STREAM[:16].astype(np.int64))[None]
    batch = mask_blocks(blocks, Masking(0.4), VOCABULARY, seeded(0, "m"))
    asked, part = batch.count, batch.to(tiny_device())
    before = torch.get_rng_state()
    counted = count_flops(model, lambda: token_loss(model, part).backward())
    layer = 2 * 16 * (32 * 96 + 32 * 32 + 32 * 128 + 64 * 32) + 2 * 2 * 16 * 16 * 32
    head = 2 * asked * (32 * 32 + 32 * VOCABULARY.size)
    assert counted == 3 * (2 * layer + head)
    assert all(weight.grad is None for weight in model.parameters())
    assert torch.equal(before, torch.get_rng_state())


class Scripted:
    """An objective whose loss is what a list says."""

    def __init__(self, losses: list[float]) -> None:
        self._losses, self.steps = losses, len(losses) // 2

    def batches(self, epoch: int) -> list[list[float]]:
        return [[loss] for loss in self._losses[(epoch - 1) * self.steps : epoch * self.steps]]

    def sizes(self, batch: list[float]) -> tuple[int, int]:
        return 10, 1

    def part(self, batch: list[float], rows: slice, device: Device) -> float:
        return sum(batch[rows])

    def loss(self, model: torch.nn.Module, part: float) -> torch.Tensor:
        return model(torch.zeros(1, 1)).sum() * 0.0 + part * 10


@pytest.mark.parametrize(
    ("losses", "spike", "found"),
    [
        ([3.0] * 30 + [1.0] * 30, 2.0, None),
        ([3.0] * 30 + [9.0] * 6 + [3.0] * 24, 2.0, None),  # a few bad batches are no spike
        ([3.0] * 30 + [9.0] * 30, 2.0, r"rose from 3\.00 to 5\.10 at step 37 \(epoch 2, batch 7\)"),
        ([9.0] * 25 + [1.0] * 25 + [4.0] * 30, 2.0, r"rose from 1\.00 to 3\.10 at step 64 \(epoch 2, batch 24\)"),
        ([3.0] * 30 + [9.0] * 30, None, None),
    ],
)
def test_a_loss_that_rises_far_stops_the_run(losses: list[float], spike: float | None, found: str | None) -> None:
    settings = OptimizerSettings(kind="adamw", max_loss_rise=spike)
    run = Run("test", torch.nn.Linear(1, 1), Scripted(losses), tiny_device(), settings, 0.01, 2)
    with pytest.raises(InputError, match=found) if found else nullcontext():
        train(run, lambda epoch, meter: None)


def test_each_label_is_the_next_token() -> None:
    blocks = torch.tensor([[VOCABULARY.begin, 10, 11, VOCABULARY.unknown, 12, VOCABULARY.end]])
    labelled = next_tokens(blocks, VOCABULARY)
    assert torch.equal(labelled.ids, blocks)
    assert labelled.labels.tolist() == [[10, 11, IGNORED, 12, IGNORED, IGNORED]]


@given(st.integers(2, 40), st.integers(1, 40), st.integers(41, 200), st.integers(1, 5))
@settings(max_examples=50)
def test_sliding_windows_predict_each_token_once(block: int, stride: int, length: int, batch: int) -> None:
    stride = min(stride, block - 1)
    stream = np.arange(5, 5 + length)
    asked = []
    for labelled in sliding_batches(stream, block, stride, Vocabulary(300, 0, 1, 2, 3, 4), batch):
        for ids, labels in zip(labelled.ids, labelled.labels, strict=True):
            places = torch.nonzero(labels != IGNORED)[:, 0]
            assert torch.equal(labels[places], ids[places] + 1)
            if asked:
                assert places[0] + 1 >= block - stride
            asked += labels[places].tolist()
    assert asked == list(range(6, 5 + length))


def test_passages_consist_of_whole_words_and_avoid_unknown_ones() -> None:
    title = "= Title =\nthe guild of weavers was founded by Ada Lund\nthe <unk> of the town"
    passages = sample_passages(iter([title, "the river of the town"]), TOKENIZER, 10, 8, 0)
    assert len(passages) == 2
    for passage in passages:
        assert len(passage.ids) <= 8
        assert VOCABULARY.unknown not in passage.ids
        text = TOKENIZER.decode(passage.ids)
        assert (passage.words, passage.bytes) == (len(text.split()), len(text.encode()))


def test_a_long_word_is_not_cut_within_a_character() -> None:
    """A word of 語, which is three tokens."""
    tokenizer = train_tokenizer(TokenizerSettings(kind="bpe", vocab_size=261), lambda: ["a b"])
    for length in range(6, 12):
        (passage,) = sample_passages(iter(["語" * 50]), tokenizer, 1, length, 0)
        characters = (length - 3) // 3  # three tokens are a space and the special ones
        assert len(passage.ids) == 3 + 3 * characters
        assert (passage.bytes, passage.words) == (3 * characters, characters / 50)


def test_a_passage_without_targets_counts_for_nothing() -> None:
    known, unknown = (sample_passages(iter([text]), TOKENIZER, 1, 32, 0)[0] for text in ("the river", "🙂 🙂"))
    model = _model().eval()
    alone, sizes = pseudo_losses(model, [known], VOCABULARY, tiny_device())
    both, more = pseudo_losses(model, [unknown, known], VOCABULARY, tiny_device())
    assert (both.scored[0], more.words[0]) == (0, 0)
    assert (both.mean, both.sums[1], more.words[1]) == (alone.mean, alone.sums[0], sizes.words[0])
    nothing = figures_of(*pseudo_losses(model, [unknown], VOCABULARY, tiny_device()))
    assert nothing.to_json() == {"perplexity_per_token": None, "perplexity_per_word": None, "bits_per_byte": None}


def test_a_text_of_headings_has_passages_too() -> None:
    assert len(sample_passages(iter(["= the guild =\n= the river ="]), TOKENIZER, 10, 32, 0)) == 2


def test_a_mean_loss_without_targets_is_an_input_error() -> None:
    nothing = [LabelledBatch(torch.zeros(1, 4, dtype=torch.long), torch.full((1, 4), IGNORED))]
    with pytest.raises(InputError, match="no token to predict"):
        mean_loss(_model().eval(), nothing, tiny_device())


def test_a_loss_of_nan_is_not_reported() -> None:
    model = _model().eval()
    torch.nn.init.constant_(next(model.parameters()), torch.nan)
    passages = [Passage(TOKENIZER.encode("the river").ids, 2, 9)]
    with pytest.raises(InputError, match="loss on held-out text is nan"):
        pseudo_losses(model, passages, VOCABULARY, tiny_device())
    with pytest.raises(InputError, match="loss on held-out text is nan"):
        document_losses(model, masked_batches(STREAM, 32, 0.15, VOCABULARY), np.array([len(STREAM)]), tiny_device())


def test_without_epochs_the_weights_are_only_evaluated() -> None:
    model, objective = start("modernbert", False, tiny_device())
    before = {name: weight.clone() for name, weight in model.state_dict().items()}
    run = Run("none", model, objective, tiny_device(), OptimizerSettings(), 1e-3, 0)
    speed = train(run, lambda epoch, meter: epoch.number)
    assert run.journal == [0]
    assert (speed.tokens, speed.flops) == (0, 0.0)
    assert all(torch.equal(weight, before[name]) for name, weight in model.state_dict().items())


def test_masking_needs_a_mask_token() -> None:
    blocks = torch.full((1, 8), 20)
    with pytest.raises(InputError, match="the tokenizer has no mask"):
        mask_blocks(blocks, Masking(0.3), replace(VOCABULARY, mask=None), seeded(0, "test"))
