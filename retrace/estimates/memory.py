"""The operations of an update, and the peak memory of its tensors.

Estimates use no formula: an update of the real model runs on fake tensors, which have shapes but no values, while
operations are counted and storages are tracked from allocation to release. So temporary tensors of the backward pass
and the optimizer count too. The optimizer has its moments already, as in all updates but the first.
"""

import math
import weakref
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from copy import deepcopy
from dataclasses import dataclass, field, replace
from typing import Any
from unittest.mock import patch

import torch
from torch import Tensor, nn
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.nn import functional
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves
from transformers import PreTrainedConfig, PreTrainedModel
from transformers.modeling_layers import GradientCheckpointingLayer

from retrace.compute.sharding import recompute_layers
from retrace.core.environment import is_true, whole_number
from retrace.core.errors import InputError
from retrace.finetuning.method import round_frozen
from retrace.models import dropout
from retrace.models.heads import Head, make_model, objective_of
from retrace.models.language_model import LanguageModel, PairModel
from retrace.tasks.question_answering.extractive import SpanModel
from retrace.training.optimizer import TOGETHER, Muon, make_optimizers
from retrace.training.settings import OptimizerSettings
from retrace.training.throughput import ProductOperations


class LiveMemory(TorchDispatchMode):
    """Counts the bytes of storages that are allocated within it, real or fake, until each is freed.

    It does not see buffers inside an operation, or memory that an allocator keeps for reuse.
    """

    def __init__(self) -> None:
        super().__init__()
        self.now = 0  # bytes
        self.peak = 0
        self.most_besides = 0  # the peak of everything but the gradients of watched weights
        self._gradients = 0  # bytes of these
        self._has_gradient: set[nn.Parameter] = set()
        self._uncopied: set[nn.Parameter] = set()
        self._alive: set[int] = set()

    def begin(self) -> None:
        """Forget the peaks so far."""
        self.peak = self.most_besides = self.now

    def watch(self, weights: Iterable[nn.Parameter]) -> None:
        """Tell the gradients of these weights, which have none yet, from other tensors."""
        for weight in weights:
            if weight.requires_grad:
                weight.register_post_accumulate_grad_hook(self._note_gradient)

    def leave_out_copies(self, weights: Iterable[nn.Parameter]) -> None:
        """Do not count copies of these weights in another precision."""
        self._uncopied.update(weights)

    def _note_gradient(self, weight: Any) -> None:
        if weight not in self._has_gradient:  # else it was added to an earlier micro-batch's
            self._has_gradient.add(weight)
            self._gradients += weight.nbytes

    def __torch_dispatch__(
        self, func: Callable[..., Any], types: Any, args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        """Run the operation and count its results."""
        result = func(*args, **(kwargs or {}))
        is_left_out = func is torch.ops.aten._to_copy.default and args[0] in self._uncopied
        for value in tree_leaves(result):
            if isinstance(value, Tensor):
                storage = value.untyped_storage()
                self._count(storage, 0 if is_left_out else storage.nbytes())
        return result

    def _count(self, storage: torch.UntypedStorage, size: int) -> None:
        key = storage._cdata
        if key not in self._alive:
            self._alive.add(key)
            self.now += size
            self.peak = max(self.peak, self.now)
            self.most_besides = max(self.most_besides, self.now - self._gradients)
            weakref.finalize(storage, self._forget, key, size)

    def _forget(self, key: int, size: int) -> None:
        self._alive.discard(key)
        self.now -= size


def _fused_attention(
    query: Tensor, key: Tensor, value: Tensor, attn_mask: Tensor | None = None, dropout_p: float = 0.0,
    is_causal: bool = False, scale: float | None = None, enable_gqa: bool = False,
) -> Tensor:  # fmt: skip
    """CUDA's kernels: flash attention without a mask and in bf16, else the memory-efficient one.

    A CPU's kernels, with dropout, keep all attention weights.
    """
    if torch.is_autocast_enabled("cpu"):
        query, key, value = (tensor.to(torch.bfloat16) for tensor in (query, key, value))
    if attn_mask is None and query.dtype == torch.bfloat16:
        flash = torch.ops.aten._scaled_dot_product_flash_attention
        return flash(query, key, value, dropout_p, is_causal, scale=scale)[0]
    if enable_gqa:
        key, value = (tensor.repeat_interleave(query.shape[1] // key.shape[1], 1) for tensor in (key, value))
    bias = None if attn_mask is None else attn_mask.to(query.dtype).expand(-1, query.shape[1], -1, -1)
    efficient = torch.ops.aten._scaled_dot_product_efficient_attention
    return efficient(query, key, value, bias, True, dropout_p, is_causal, scale=scale)[0]


def _fused_dropout(states: Tensor, rate: float, training: bool) -> Tensor:
    """CUDA's kernel, whose mask takes a byte for each element; a CPU's takes as many as the element."""
    if training and 0 < rate < 1:
        return torch.native_dropout(states, rate, training)[0]
    return functional.dropout(states, rate, training)


@contextmanager
def _as_on_cuda() -> Iterator[None]:
    """Attention and dropout by CUDA's kernels, and Muon's matrices in the large groups that are multiplied together."""
    of_muon = patch.dict(TOGETHER, cpu=TOGETHER["cuda"])
    of_attention = patch.object(functional, "scaled_dot_product_attention", _fused_attention)
    with of_muon, of_attention, patch.object(dropout, "dropped", _fused_dropout):
        yield


FLOAT = 4  # bytes; trained weights, gradients and moments are float32 whatever the precision of products
BF16 = 2  # bytes


@dataclass(frozen=True)
class Needs:
    """What training a model takes; memory in bytes of tensors."""

    parameters: int
    trained: int  # how many of these are trained
    weights: int  # bytes of all parameters
    flops: float  # of matrix products, per token, forward and backward
    moments: int  # bytes of the optimizer's moments
    passes: int  # bytes at the peak of the forward and backward passes
    besides: int  # bytes of everything but gradients, at their own peak in these passes
    layer: int  # parameters of the largest layer
    outside: int  # parameters outside of all layers
    gathered: int = 0  # bytes of a weight of a layer where sharding gathers it; 0: each process has the whole model
    step: int = 0  # bytes at the peak of the optimizer's step
    updates: int = 0  # bytes of Muon's updates among these, as many as of its gradients

    @property
    def peak(self) -> int:
        """Bytes at the peak of the whole update."""
        return max(self.passes, self.step)

    @property
    def gradients(self) -> int:
        """Bytes of the gradients."""
        return FLOAT * self.trained

    @property
    def activations(self) -> int:
        """The peak of activations, or of the optimizer's temporary tensors, alone; it may come before the gradients."""
        return max(self.besides, self.step - self.gradients) - self.weights - self.moments

    @property
    def checkpoint(self) -> int:
        """Bytes of a checkpoint of pretraining: the trained weights and their moments."""
        return self.gradients + self.moments

    def memory(self, processes: int) -> int:
        """Bytes that each process needs; of several, each has all gradients at all times or, if sharded, a share.

        With sharding, two layers are gathered at once; parameters outside of layers stay gathered from the forward
        pass to the end of the backward pass (see `sharding.to_device`). The peak is where activations are largest,
        before there are gradients; or later, when all gradients are there, two parts of them not yet sharded: those of
        a layer and those outside of layers; or in the optimizer's step, where Muon gathers a few matrices at a time.
        """
        if processes == 1:
            return self.peak
        if not self.gathered:
            return max(self.besides, self.step - (self.updates or self.gradients)) + self.gradients
        kept = self.weights + self.moments
        updated = kept + self.gradients
        gathered = self.gathered * 2 * self.layer + FLOAT * self.outside
        before = math.ceil(kept / processes) + gathered + self.besides - kept
        unsharded = FLOAT * (self.layer + self.outside)
        later = math.ceil(updated / processes) + gathered + unsharded + self.passes - updated
        multiplied = self.step - kept - (2 * self.updates or self.gradients)  # AdamW's gradients are gone by then
        return max(before, later, math.ceil((updated + self.updates) / processes) + multiplied)


@dataclass(frozen=True)
class Load:
    """What a device trains on in an update, and how; the environment sets micro-batches and recomputed layers."""

    batch: int  # examples
    length: int  # tokens of each
    scored: int  # tokens for which a language model computes a loss
    bf16: bool
    attention: str  # transformers' name; sdpa stands for CUDA's kernels
    micro_batch: int | None = field(default_factory=lambda: whole_number("RETRACE_MICRO_BATCH"))
    recomputes: bool = field(default_factory=lambda: is_true("RETRACE_ACTIVATION_CHECKPOINTING"))
    copies: int = 1  # of each example in a forward pass
    question_match: bool = False  # the match embeddings are trained, below the whole body
    sharded: bool = False  # several processes share the weights (FSDP)
    within_documents: bool = False  # attention stays within documents, which takes a mask for each block

    def __str__(self) -> str:
        """Attention, copies of examples, micro-batches and recomputed layers, in words."""
        copied = f", {self.copies} copies of each example (R-Drop)" if self.copies > 1 else ""
        parts = f", at most {self.micro_batch} at once" if self.micro_batch else ""
        return f"{self.attention} attention{copied}{parts}{', activation checkpointing' if self.recomputes else ''}"

    @property
    def gathered(self) -> int:
        """Bytes of a weight of a layer where it is gathered, on GPUs in the precision of products; 0: not sharded."""
        on_gpu = self.attention == "sdpa"
        return (BF16 if self.bf16 and on_gpu else FLOAT) if self.sharded else 0

    @property
    def part(self) -> "Load":
        """The load of a micro-batch; a batch is split into as few as possible of almost equal size."""
        passes = math.ceil(self.batch / (self.micro_batch or self.batch))
        most = math.ceil(self.batch / passes)
        return replace(self, batch=most, scored=self.scored * most // self.batch)


def update_needs(
    head: Head, config: PreTrainedConfig, load: Load, optimizer: OptimizerSettings,
    tune: Callable[[PreTrainedModel, Head], object] | None = None,
) -> Needs:  # fmt: skip
    """The needs of a model with this head, after the `tune` of a method.

    Raises InputError if the optimizer gets no weights.
    """
    with torch.device("meta"):
        model = _prepared(head, config, load, tune).train()
    with FakeTensorMode(), LiveMemory() as live:
        _give_fake_weights(model)
        try:
            optimizers = make_optimizers(model, optimizer, 1.0, load.bf16)
        except ValueError as error:  # as with a frozen body whose head is tied to its embeddings
            raise InputError(f"nothing here for {optimizer.kind} to train: {error}") from None
        held = live.now
        _make_moments(model, optimizers)
        live.begin()
        live.watch(model.parameters())
        layers = [module for module in model.modules() if isinstance(module, GradientCheckpointingLayer)]
        if load.gathered == BF16:
            live.leave_out_copies(weight for layer in layers for weight in layer.parameters())
        passes = 1 if load.part.batch == load.batch else 2  # the second begins with gradients
        with _as_on_cuda() if load.attention == "sdpa" else nullcontext():
            with ProductOperations() as operations:
                for _ in range(passes):
                    _loss(model, head, load.part).backward()
            nn.utils.clip_grad_norm_(model.parameters(), optimizer.max_grad_norm)
            in_passes = live.peak, live.most_besides
            live.begin()
            _step(optimizers)
    sizes = [_size(layer) for layer in layers]
    return Needs(
        parameters=_size(model),
        trained=model.num_parameters(only_trainable=True),
        weights=sum(weight.nbytes for weight in model.parameters()),
        flops=operations.total / (passes * load.part.batch * load.length),
        moments=live.now - held,
        passes=in_passes[0],
        besides=in_passes[1],
        layer=max(sizes, default=0),
        outside=_size(model) - sum(sizes),
        gathered=load.gathered,
        step=live.peak,
        updates=_of_muon(optimizers),
    )


def _prepared(
    head: Head, config: PreTrainedConfig, load: Load, tune: Callable[[PreTrainedModel, Head], object] | None,
) -> PreTrainedModel:  # fmt: skip
    """The model as it is trained, on torch's current default device."""
    config = deepcopy(config)
    config.document_start = 0 if load.within_documents else None  # any token does; a checkpoint may name one
    if config.pad_token_id is None:  # as in Llama's published config; a classifier would refuse a batch
        config.pad_token_id = 0
    model = make_model(head, config, 0, load.attention)
    if tune is not None:
        tune(model, head)
        if load.bf16 and not load.sharded:  # as finetuning.run does
            round_frozen(model)
    if load.question_match:  # so the gradient passes through the body, frozen or not
        model.enable_input_require_grads()
    if load.recomputes:
        recompute_layers(model, preserve_rng_state=False)  # fake tensors have no random state
    return model


def _size(module: nn.Module) -> int:
    return sum(weight.numel() for weight in module.parameters())


def _of_muon(optimizers: Sequence[torch.optim.Optimizer]) -> int:
    """Bytes of the matrices that Muon trains."""
    groups = [group for each in optimizers if isinstance(each, Muon) for group in each.param_groups]
    return sum(weight.nbytes for group in groups for weight in group["params"])


def _make_moments(model: nn.Module, optimizers: Sequence[torch.optim.Optimizer]) -> None:
    for weight in model.parameters():
        if weight.requires_grad:
            weight.grad = torch.zeros_like(weight)
    _step(optimizers)


def _step(optimizers: Sequence[torch.optim.Optimizer]) -> None:
    for each in optimizers:
        each.step()
        each.zero_grad(set_to_none=True)


def _give_fake_weights(model: nn.Module) -> None:
    """Replace the meta tensors by fake tensors on the CPU; tied weights stay tied."""
    given: dict[int, Any] = {}
    for module in model.modules():
        for name, weight in [*module.named_parameters(recurse=False), *module.named_buffers(recurse=False)]:
            if id(weight) not in given:
                fake = torch.empty(weight.shape, dtype=weight.dtype, device="cpu")
                is_weight = isinstance(weight, nn.Parameter)
                given[id(weight)] = nn.Parameter(fake, weight.requires_grad) if is_weight else fake
            setattr(module, name, given[id(weight)])


def _loss(model: PreTrainedModel, head: Head, load: Load) -> Tensor:
    """The loss of one batch, as the stages compute it."""
    ids = torch.zeros(load.copies * load.batch, load.length, dtype=torch.long)
    with torch.autocast("cpu", torch.bfloat16, enabled=load.bf16):
        if head in ("language_model", "pairs"):
            at, targets = torch.arange(load.scored).view(load.batch, -1), torch.zeros(load.scored, dtype=torch.long)
            if head == "language_model":
                return LanguageModel(model)(ids, at, targets) / load.scored
            filled, related = PairModel(model)(ids, at, targets, ids, torch.ones_like(ids))
            return filled / load.scored + functional.cross_entropy(related.float(), ids[:, 0])
        if head == "spans":
            scores = SpanModel(model)(ids, torch.ones_like(ids), ids, ids).transpose(1, 2).flatten(0, 1)  # (2B, T)
        else:
            mask = torch.ones_like(ids) if objective_of(model.config) == "masked" else None
            scores = model(input_ids=ids, attention_mask=mask).logits
    return functional.cross_entropy(scores.float(), torch.zeros(len(scores), dtype=torch.long))
