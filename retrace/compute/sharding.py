"""Sharded training (FSDP2; Zhao et al. 2023), for models that one device cannot train whole.

Every process keeps a part of each weight, of its gradient and of its moments. The weights of a layer are whole
only while that layer computes, so every process must take part in every forward and backward pass.

Accelerate shards on GPUs alone and does nothing elsewhere, without a word. Here PyTorch is called directly, so
that what runs on GPUs is what tests run on processors; the variable that asks for it is Accelerate's.
"""

from collections.abc import Mapping
from itertools import chain
from typing import TypeVar, cast

import torch
from torch import Tensor, nn
from torch.distributed.checkpoint.state_dict import StateDictOptions, get_model_state_dict, set_model_state_dict
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import FSDPModule, MixedPrecisionPolicy, fully_shard
from torch.distributed.tensor import DTensor, Replicate
from transformers.modeling_layers import GradientCheckpointingLayer

from retrace.compute.device import Device

Model = TypeVar("Model", bound=nn.Module)


def to_device(model: Model, device: Device) -> Model:
    """The model on its device; where processes share the weights, its layers and then the rest are sharded in place."""
    if not device.sharded:
        nn.Module.to(model, device.torch_device)
        return model
    mesh, policy = init_device_mesh(device.torch_device.type, (device.processes,)), _layer_policy(device)
    for module in model.modules():
        if isinstance(module, GradientCheckpointingLayer):  # what transformers derives its layers from
            fully_shard(module, mesh=mesh, mp_policy=policy)
    fully_shard(model, mesh=mesh)
    return model


def data_parallel(model: nn.Module, device: Device) -> nn.Module:
    """The model to train: one whose gradients are averaged over the processes in the backward pass."""
    return model if isinstance(model, FSDPModule) else device.accelerator.prepare_model(model)


def full_tensor(tensor: Tensor) -> Tensor:
    """The tensor, put together from its parts where it is sharded; every process must call it."""
    return tensor.full_tensor() if isinstance(tensor, DTensor) else tensor


def local_shard(tensor: Tensor, like: Tensor) -> Tensor:
    """A whole tensor cut as `like` is: this process's part of it where that is sharded."""
    if not isinstance(like, DTensor):
        return tensor
    everywhere = DTensor.from_local(tensor.to(like.device), like.device_mesh, [Replicate()], run_check=False)
    return everywhere.redistribute(placements=like.placements)


def gather_weights(model: nn.Module) -> dict[str, Tensor]:
    """All weights by name, tied ones once; of a sharded model on the main process alone, elsewhere none.

    Every process must call it. Those of a sharded model are copies on the CPU.
    """
    if isinstance(model, FSDPModule):
        weights = get_model_state_dict(model, options=StateDictOptions(full_state_dict=True, cpu_offload=True))
    else:
        weights = model.state_dict()
    once = {name for name, _ in chain(model.named_parameters(), model.named_buffers())}
    return {name: cast(Tensor, weight).contiguous() for name, weight in weights.items() if name in once}


def load_weights(model: nn.Module, weights: Mapping[str, Tensor]) -> None:
    """Give a model what `gather_weights` returned; every process must call it."""
    if isinstance(model, FSDPModule):
        model.reshard()  # what is in no layer stays whole after a forward pass, and weights are given in parts
        options = StateDictOptions(full_state_dict=True, broadcast_from_rank0=True, strict=False)
        set_model_state_dict(model, dict(weights), options=options)
    else:
        model.load_state_dict(weights, strict=False)  # the other names of tied weights are missing


def _layer_policy(device: Device) -> MixedPrecisionPolicy:
    """Whole weights in bf16 where products are: autocast would keep its own copy of every weight for the backward pass.

    Gradients are averaged in float32, and what goes from layer to layer stays as autocast has it. Processors
    multiply as autocast says: their norms take no bf16 weights beside float32 activations.
    """
    if device.torch_device.type == "cpu" or not device.bf16:
        return MixedPrecisionPolicy()
    return MixedPrecisionPolicy(param_dtype=torch.bfloat16, reduce_dtype=torch.float32, cast_forward_inputs=False)
