"""Sharded training (FSDP2; Zhao et al. 2023), for models that do not fit on one device.

Every process keeps a shard of each weight, its gradient and its moments. A layer's weights are gathered only while the
layer computes, so every process must take part in every forward and backward pass.

Accelerate shards on GPUs only, and silently does nothing elsewhere. Here PyTorch is called directly, so that tests on
CPUs run the code that runs on GPUs. Accelerate's environment variable turns sharding on.
"""

from collections.abc import Mapping
from typing import Any, TypeVar, cast

import torch
from torch import Tensor, nn
from torch.distributed.checkpoint.state_dict import StateDictOptions, get_model_state_dict, set_model_state_dict
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import FSDPModule, MixedPrecisionPolicy, fully_shard
from torch.distributed.tensor import DTensor, distribute_tensor
from transformers import PreTrainedModel
from transformers.modeling_layers import GradientCheckpointingLayer
from transformers.utils.logging import warning_once

from retrace.compute.device import Device

Model = TypeVar("Model", bound=nn.Module)

SHAPES = 64  # the most shapes that a model is compiled for; in practice a few


def to_device(model: Model, device: Device) -> Model:
    """Move the model to its device; with sharding, shard its layers and then the rest, in place."""
    if not device.sharded:
        nn.Module.to(model, device.torch_device)
        return model
    mesh, policy = init_device_mesh(device.torch_device.type, (device.processes,)), _layer_policy(device)
    for module in model.modules():
        if isinstance(module, GradientCheckpointingLayer):  # the base class of layers in transformers
            fully_shard(module, mesh=mesh, mp_policy=policy)
    fully_shard(model, mesh=mesh)
    return model


def recompute_layers(model: nn.Module, **options: bool) -> None:
    """Activation checkpointing (Chen et al. 2016): keep only each layer's input, and recompute in the backward pass.

    Dropout masks stay the same. `options` are torch.utils.checkpoint's.
    """
    for body in model.modules():
        has_layers = any(isinstance(module, GradientCheckpointingLayer) for module in body.modules())
        if isinstance(body, PreTrainedModel) and has_layers:  # precomputed features may replace the layers
            body.activation_checkpointing_enable({"use_reentrant": False, **options})
            body.disable_input_require_grads()  # only needed with re-entrance; a frozen body would compute gradients


def data_parallel(model: nn.Module, device: Device) -> nn.Module:
    """The model for training: compiled if asked for, and with gradients averaged over the processes.

    Evaluation uses the unwrapped model, on batches of any shape.
    """
    if device.recomputes:
        recompute_layers(model)
    if isinstance(model, FSDPModule):
        return model
    return device.accelerator.prepare_model(_compiled(model, device.compiler) if device.compiler else model)


def _compiled(model: nn.Module, backend: str) -> nn.Module:
    """The model compiled as one graph, for each shape separately, so that no shape's kernels depend on another's.

    Kernels are chosen without autotuning, so that a resumed run has the same ones.
    """
    torch._dynamo.config.ignore_logging_functions.add(warning_once)  # recomputed layers warn that they keep no cache
    options = {"deterministic": True} if backend == "inductor" else None
    how: Any = {"fullgraph": True, "dynamic": False, "recompile_limit": SHAPES, "options": options}
    return cast(nn.Module, torch.compile(model, backend=backend, **how))


def full_tensor(tensor: Tensor) -> Tensor:
    """The whole of a possibly sharded tensor; every process must call it."""
    return tensor.full_tensor() if isinstance(tensor, DTensor) else tensor


def local_shard(tensor: Tensor, like: Tensor) -> Tensor:
    """A whole tensor sharded as `like` is."""
    if not isinstance(like, DTensor):
        return tensor
    return distribute_tensor(tensor.detach().to(like.device), like.device_mesh, like.placements, src_data_rank=None)


def gather_weights(model: nn.Module, only_trained: bool = False) -> dict[str, Tensor]:
    """All weights by name, or only the trained ones, tied weights once; every process must call it.

    For a sharded model these are copies on the CPU of the main process; other processes get none.
    """
    if isinstance(model, FSDPModule):
        options = StateDictOptions(full_state_dict=True, cpu_offload=True, ignore_frozen_params=only_trained)
        weights = get_model_state_dict(model, options=options)
    else:
        weights = model.state_dict()
    once = {name for name, weight in model.named_parameters() if weight.requires_grad or not only_trained}
    once |= {name for name, _ in model.named_buffers() if not only_trained}
    return {name: cast(Tensor, weight).contiguous() for name, weight in weights.items() if name in once}


def load_weights(model: nn.Module, weights: Mapping[str, Tensor]) -> None:
    """Load the result of `gather_weights`; every process must call it."""
    if isinstance(model, FSDPModule):
        model.reshard()  # as weights outside the layers stay gathered after a forward pass
        options = StateDictOptions(full_state_dict=True, broadcast_from_rank0=True, strict=False)
        set_model_state_dict(model, dict(weights), options=options)
    else:
        model.load_state_dict(weights, strict=False)  # tied weights have one name only


def _layer_policy(device: Device) -> MixedPrecisionPolicy:
    """Gather weights in bf16 if products are in bf16: autocast would keep a copy of every weight for the backward pass.

    Gradients are averaged in float32, and activations between layers stay as under autocast. CPUs leave it all to
    autocast, as their norms accept no bf16 weights with float32 activations.
    """
    if device.torch_device.type == "cpu" or not device.bf16:
        return MixedPrecisionPolicy()
    return MixedPrecisionPolicy(param_dtype=torch.bfloat16, reduce_dtype=torch.float32, cast_forward_inputs=False)
