"""What an update takes: operations, and the bytes of tensors that are alive at once.

Nothing is estimated by formula: an update of the real model runs on fake tensors, which have shapes but no values,
while operations are counted and storages followed from their making to their end. So what the backward pass and
the optimizer hold for a moment counts too. The optimizer has made its moments before, as in all updates but the first.
"""

import weakref
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, field, replace
from typing import Any

import torch
from torch import Tensor, nn
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.nn import functional
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves
from transformers import PreTrainedConfig, PreTrainedModel
from transformers.modeling_layers import GradientCheckpointingLayer

from retrace.compute.device import is_true, whole_number
from retrace.compute.sharding import recompute_layers
from retrace.core.errors import InputError
from retrace.estimates.architectures import empty_model
from retrace.finetuning.method import is_part, round_frozen
from retrace.models.heads import Head, objective_of
from retrace.models.language_model import LanguageModel
from retrace.pretraining.settings import PretrainSettings
from retrace.tasks.question_answering.extractive import SpanModel
from retrace.training.optimizer import make_optimizers
from retrace.training.settings import OptimizerSettings
from retrace.training.throughput import ProductOperations


class LiveMemory(TorchDispatchMode):
    """Counts the storages that are made while it is entered, until each is freed; real tensors or fake ones.

    What an operation holds only within itself is not seen, and neither is what an allocator keeps for later.
    """

    def __init__(self) -> None:
        super().__init__()
        self.now = 0  # bytes
        self.peak = 0
        self._alive: set[int] = set()

    def __torch_dispatch__(
        self, func: Callable[..., Any], types: Any, args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        """Run the operation, and count what it made."""
        result = func(*args, **(kwargs or {}))
        for value in tree_leaves(result):
            if isinstance(value, Tensor):
                self._count(value.untyped_storage())
        return result

    def _count(self, storage: torch.UntypedStorage) -> None:
        key, size = storage._cdata, storage.nbytes()
        if key not in self._alive:
            self._alive.add(key)
            self.now += size
            self.peak = max(self.peak, self.now)
            weakref.finalize(storage, self._forget, key, size)

    def _forget(self, key: int, size: int) -> None:
        self._alive.discard(key)
        self.now -= size


@contextmanager
def attention_of_cuda() -> Iterator[None]:
    """Give fused attention the kernels that it has on CUDA; on a processor, dropout makes it keep all its weights."""
    of_processor = functional.scaled_dot_product_attention
    functional.scaled_dot_product_attention = _fused_attention
    try:
        yield
    finally:
        functional.scaled_dot_product_attention = of_processor


def _fused_attention(
    query: Tensor, key: Tensor, value: Tensor, attn_mask: Tensor | None = None, dropout_p: float = 0.0,
    is_causal: bool = False, scale: float | None = None, enable_gqa: bool = False,
) -> Tensor:  # fmt: skip
    """Flash attention where there is no mask and products are in bf16, else the memory-efficient kernel."""
    if torch.is_autocast_enabled("cpu"):
        query, key, value = (tensor.to(torch.bfloat16) for tensor in (query, key, value))
    if attn_mask is None and query.dtype == torch.bfloat16:
        return torch.ops.aten._scaled_dot_product_flash_attention(query, key, value, dropout_p, is_causal, scale=scale)[
            0
        ]
    if enable_gqa:
        key, value = (tensor.repeat_interleave(query.shape[1] // key.shape[1], 1) for tensor in (key, value))
    bias = None if attn_mask is None else attn_mask.to(query.dtype).expand(-1, query.shape[1], -1, -1)
    return torch.ops.aten._scaled_dot_product_efficient_attention(
        query, key, value, bias, True, dropout_p, is_causal, scale=scale
    )[0]


FLOAT = 4  # bytes; what is trained, gradients and moments are float32 whatever the precision of products


@dataclass(frozen=True)
class Needs:
    """What training a model takes; memory in bytes, of tensors."""

    parameters: int
    trained: int  # of these
    weights: int  # bytes of all parameters
    flops: float  # of matrix products, for one token, forward and backward
    moments: int  # the optimizer's
    peak: int  # the most that is held at once
    layer: int  # of the parameters, those of the largest layer
    outside: int  # those of no layer

    @property
    def gradients(self) -> int:
        """Bytes of the gradients."""
        return FLOAT * self.trained

    @property
    def passing(self) -> int:
        """What comes on top at the peak: activations, copies in bf16, what is held for a moment."""
        return self.peak - self.weights - self.gradients - self.moments

    @property
    def checkpoint(self) -> int:
        """Bytes of a checkpoint of pretraining: what is trained, and its moments."""
        return self.gradients + self.moments

    def memory(self, processes: int, sharded: bool = False) -> int:
        """Bytes that one of the processes needs; many keep a copy of the gradients, or share everything (`sharded`).

        Sharded, two layers are whole at once, one with its gradient, and what is in no layer is from the forward pass
        to the end of the backward pass (see `sharding.to_device`).
        """
        if not sharded or processes == 1:
            return self.peak + (self.gradients if processes > 1 else 0)
        kept = -(-(self.weights + self.gradients + self.moments) // processes)
        return kept + FLOAT * (3 * self.layer + 2 * self.outside) + self.passing


@dataclass(frozen=True)
class Load:
    """What a device trains on in an update, and how; parts and layers computed again are as this machine has them."""

    batch: int  # examples
    length: int  # tokens of each
    scored: int  # tokens that a language model scores
    bf16: bool
    attention: str  # transformers' name; sdpa stands for CUDA's kernels
    micro_batch: int | None = field(default_factory=lambda: whole_number("RETRACE_MICRO_BATCH"))
    recomputes: bool = field(default_factory=lambda: is_true("RETRACE_ACTIVATION_CHECKPOINTING"))

    def __str__(self) -> str:
        """How it passes through the model."""
        parts = f", at most {self.micro_batch} at once" if self.micro_batch else ""
        return f"{self.attention} attention{parts}{', layers computed again' if self.recomputes else ''}"

    @property
    def part(self) -> "Load":
        """What passes through the model at once."""
        most = min(self.batch, self.micro_batch or self.batch)
        return replace(self, batch=most, scored=self.scored * most // self.batch)


def pretraining_needs(
    config: PreTrainedConfig, recipe: PretrainSettings, blocks: int, bf16: bool, attention: str
) -> Needs:
    """The needs of a language model of this config under a recipe, of a device that gets so many blocks a step."""
    share = recipe.mask_rate if objective_of(config) == "masked" else 1.0
    load = Load(blocks, recipe.block_size, blocks * int(recipe.block_size * share), bf16, attention)
    return update_needs("language_model", config, load, recipe.optimizer)


def update_needs(
    head: Head, config: PreTrainedConfig, load: Load, optimizer: OptimizerSettings,
    tune: Callable[[PreTrainedModel, Head], object] | None = None,
) -> Needs:  # fmt: skip
    """The needs of a model with this head, made ready by the `tune` of a method; neither memory nor time is spent.

    Raises InputError where the optimizer gets no weights.
    """
    if config.pad_token_id is None:  # as in Llama's published config; a classifier then takes no batch
        config.pad_token_id = 0
    model = empty_model(head, config, load.attention)
    if tune is not None:
        with torch.device("meta"):
            tune(model, head)
        if load.bf16 and is_part(model):
            round_frozen(model)
    if load.recomputes:
        recompute_layers(model, preserve_rng_state=False)  # of which fake tensors have none
    with FakeTensorMode(), LiveMemory() as live:
        _give_fake_weights(model.train())
        try:
            optimizers = make_optimizers(model, optimizer, 1.0)
        except ValueError as error:  # such as a frozen body whose head is a tied one
            raise InputError(f"nothing here for {optimizer.kind} to train: {error}") from None
        held = live.now
        _make_moments(model, optimizers)
        live.peak = live.now
        passes = 1 if load.part.batch == load.batch else 2  # in the second, there are gradients before it
        with ProductOperations() as operations, attention_of_cuda() if load.attention == "sdpa" else nullcontext():
            for _ in range(passes):
                _loss(model, head, load.part).backward()
        nn.utils.clip_grad_norm_(model.parameters(), optimizer.max_grad_norm)
        _step(optimizers)
    layers = [_size(module) for module in model.modules() if isinstance(module, GradientCheckpointingLayer)]
    return Needs(
        parameters=_size(model),
        trained=sum(weight.numel() for weight in model.parameters() if weight.requires_grad),
        weights=sum(weight.nbytes for weight in model.parameters()),
        flops=operations.total / (passes * load.part.batch * load.length),
        moments=live.now - held,
        peak=live.peak,
        layer=max(layers, default=0),
        outside=_size(model) - sum(layers),
    )


def _size(module: nn.Module) -> int:
    return sum(weight.numel() for weight in module.parameters())


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
    """Put fake tensors of a processor in the place of those of the meta device; what was tied stays tied."""
    given: dict[int, Any] = {}
    for module in model.modules():
        for name, weight in [*module.named_parameters(recurse=False), *module.named_buffers(recurse=False)]:
            if id(weight) not in given:
                fake = torch.empty(weight.shape, dtype=weight.dtype, device="cpu")
                is_weight = isinstance(weight, nn.Parameter)
                given[id(weight)] = nn.Parameter(fake, weight.requires_grad) if is_weight else fake
            setattr(module, name, given[id(weight)])


def _loss(model: PreTrainedModel, head: Head, load: Load) -> Tensor:
    """The loss of one batch, as the stages have it."""
    ids = torch.zeros(load.batch, load.length, dtype=torch.long)
    with torch.autocast("cpu", torch.bfloat16, enabled=load.bf16):
        if head == "language_model":
            at = torch.arange(load.scored).view(load.batch, -1)
            return LanguageModel(model)(ids, at, torch.zeros(load.scored, dtype=torch.long)) / load.scored
        if head == "spans":
            scores = SpanModel(model)(ids, torch.ones_like(ids), ids, ids)  # (B, T, 2)
            scores = scores.transpose(1, 2).flatten(0, 1)
        else:
            mask = torch.ones_like(ids) if objective_of(model.config) == "masked" else None
            scores = model(input_ids=ids, attention_mask=mask).logits
    return functional.cross_entropy(scores.float(), torch.zeros(len(scores), dtype=torch.long))
