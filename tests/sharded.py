"""Toy runs that one process makes alone or several together; torchrun starts this module with the file to write to."""

import hashlib
import json
import sys
from pathlib import Path
from typing import Any, Literal

import torch
from torch import Tensor
from torch.distributed.tensor import DTensor
from transformers import PreTrainedConfig

from retrace.compute.device import Device
from retrace.compute.sharding import data_parallel, full_tensor, gather_weights, load_weights, local_shard, to_device
from retrace.models.language_model import make_language_model
from retrace.objectives.language_modelling import BlockModelling, Masking, masked_batches, mean_loss
from retrace.objectives.next_sentence import PairModelling, relation_accuracy
from retrace.perplexity.losses import Passage, pseudo_losses
from retrace.tokens.tokenizer import Vocabulary
from retrace.training.loop import Epoch, Objective, Run, train
from retrace.training.optimizer import Muon, make_optimizers
from retrace.training.progress import Meter
from retrace.training.settings import OptimizerSettings
from tests.tiny import TEXT, tiny_config, tiny_device, tiny_stream, tiny_tokenizer

TOKENIZER = tiny_tokenizer()
VOCABULARY, STREAM, MASKING = Vocabulary.of(TOKENIZER), tiny_stream(TOKENIZER), Masking(0.3)
PASSAGES = [Passage(TOKENIZER.encode(text).ids, 1, 1) for text in TEXT[:3]]  # one more than the processes
CASES = ("modernbert", "bert, pairs", "modernbert, adamw", "roberta, adamw", "llama, adamw")


def run(case: str, device: Device) -> dict[str, Any]:
    """One epoch: training, validation and pseudo-losses, operations, and the norm of each weight in the end."""
    family, _, kind = case.partition(", ")
    model, objective = start(family, kind == "pairs", device)
    settings = OptimizerSettings(kind="adamw" if kind == "adamw" else "muon")

    def after_epoch(epoch: Epoch, meter: Meter) -> list[float]:
        answers = model.of_tokens if kind == "pairs" else model
        found = [epoch.loss or 0.0, mean_loss(answers, masked_batches(STREAM, 32, 0.15, VOCABULARY, 7), device)]
        if kind == "pairs":
            return [*found, relation_accuracy(model, objective.batches(0), device)]
        return [*found, pseudo_losses(model, PASSAGES, VOCABULARY, device)[0].mean]

    done = Run("test", model, objective, device, settings, 0.002, 1)
    speed = train(done, after_epoch)
    norms = {name: weight.norm().item() for name, weight in gather_weights(model).items()}
    return {"journal": done.journal, "flops": speed.flops, "weights": norms}


def start(
    family: str, pairs: bool, device: Device, masking: Masking = MASKING, config: PreTrainedConfig | None = None,
    attention: str = "eager",
) -> tuple[Any, Objective]:  # fmt: skip
    """A model and what it learns."""
    config = config or tiny_config(family, TOKENIZER)
    if pairs:
        model = to_device(make_language_model(config, 0, attention, pairs=True), device)
        return model, PairModelling(STREAM, TOKENIZER, 32, 8, masking, 1)
    model = to_device(make_language_model(config, 0, attention), device)
    return model, BlockModelling(STREAM, VOCABULARY, 32, 8, None if family == "llama" else masking, 1)


def held(kind: Literal["muon", "adamw"], device: Device) -> int:
    """Bytes of weights, gradients and moments that this process holds after a step."""
    model, objective = start("modernbert", False, device)
    optimizers = make_optimizers(model, OptimizerSettings(kind=kind), 0.002)
    batch = next(iter(objective.batches(1)))
    rows, _ = device.share(len(batch))[0]
    objective.loss(model, objective.part(batch, rows, device)).backward()
    for optimizer in optimizers:
        optimizer.step()
    tensors = [t for weight in model.parameters() for t in (weight, weight.grad)]
    tensors += [t for optimizer in optimizers for state in optimizer.state.values() for t in state.values()]
    mine = [tensor.to_local() if isinstance(tensor, DTensor) else tensor for tensor in tensors]
    return sum({t.untyped_storage().data_ptr(): t.untyped_storage().nbytes() for t in mine}.values())


def gradient_storages(device: Device) -> tuple[int, int]:
    """How many weights have a gradient after a backward pass, and how many storages these gradients are in."""
    model, objective = start("modernbert", False, device)
    parallel, batch = data_parallel(model, device), next(iter(objective.batches(1)))
    rows, _ = device.share(len(batch))[0]
    objective.loss(parallel, objective.part(batch, rows, device)).backward()
    gradients = [weight.grad for weight in model.parameters() if weight.grad is not None]
    return len(gradients), len({gradient.untyped_storage().data_ptr() for gradient in gradients})


def stepped() -> list[str]:
    """Digests of matrices of several shapes after Muon's steps along given gradients, in float32 and bfloat16."""
    shapes, found = [(24, 8), (8, 24), (8, 24), (16, 16), (24, 8), (8, 24)], []
    for precision in (torch.float32, torch.bfloat16):
        draws = torch.Generator().manual_seed(1)
        weights = [torch.nn.Parameter(torch.randn(shape, generator=draws)) for shape in shapes]
        optimizer = Muon(weights, 0.02, 0.1, precision, 5)
        for _ in range(3):
            for weight in weights:
                weight.grad = torch.randn(weight.shape, generator=draws)
            optimizer.step()
        found.append(hashlib.sha256(torch.cat([w.detach().flatten() for w in weights]).numpy().tobytes()).hexdigest())
    return found


def goes_there_and_back(device: Device) -> bool:
    """Whether weights that are put together, cut again or loaded into another model are what they were."""
    model, other = (start("llama", False, device)[0] for _ in range(2))
    with torch.no_grad():
        for weight in model.parameters():
            weight.mul_(2)
    load_weights(other, gather_weights(model))
    pairs = list(zip(model.parameters(), other.parameters(), strict=True))
    same = all(torch.equal(_local(one), _local(two)) for one, two in pairs)
    return same and all(torch.equal(_local(local_shard(full_tensor(one), one)), _local(one)) for one, _ in pairs)


def _local(tensor: Tensor) -> Tensor:
    return tensor.to_local() if isinstance(tensor, DTensor) else tensor


def main(path: Path) -> None:
    device = tiny_device()
    runs = {case: run(case, device) for case in CASES}
    sizes = {kind: _gathered(held(kind, device), device) for kind in ("muon", "adamw")}
    found = {"runs": runs, "held": sizes, "same": _gathered(goes_there_and_back(device), device), "stepped": stepped()}
    storages = None if device.sharded else gradient_storages(device)
    if device.is_main:
        path.write_text(json.dumps({**found, "sharded": device.sharded, "gradient storages": storages}))


def _gathered(value: float, device: Device) -> list[float]:
    return [device.all_reduce_sum([value if rank == device.rank else 0])[0] for rank in range(device.processes)]


if __name__ == "__main__":
    main(Path(sys.argv[1]))
