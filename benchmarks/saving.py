"""What a checkpoint costs: its size, how long training waits for the copy, and how long until it is written.

Models of full size with random weights, after one update; medians of five checkpoints each. Nothing is trained
meanwhile, so writing has both cores to itself.

    python benchmarks/saving.py    # two minutes
"""

import os
import statistics
import tempfile
import time
from pathlib import Path

import torch
from harness import write_result
from transformers import BertConfig, LlamaConfig, PretrainedConfig

from retrace.compute.device import open_device
from retrace.compute.sharding import gather_weights
from retrace.finetuning.method import read_method
from retrace.models.heads import make_model
from retrace.training.checkpoint import Checkpointer, Position
from retrace.training.optimizer import make_optimizers
from retrace.training.settings import OptimizerSettings

ROUNDS = 5
LLAMA = LlamaConfig(
    hidden_size=1024, intermediate_size=4096, num_hidden_layers=8, num_attention_heads=16, num_key_value_heads=4,
    vocab_size=32000, pad_token_id=0,
)  # fmt: skip
CASES: dict[str, tuple[PretrainedConfig, str]] = {
    "llama, frozen": (LLAMA, "frozen"), "llama, lora": (LLAMA, "lora"), "bert-base, full": (BertConfig(), "full"),
}  # fmt: skip


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        os.environ["DVC_ROOT"] = folder
        write_result("saving", {name: cost(*case) for name, case in CASES.items()})


def cost(config: PretrainedConfig, method: str) -> dict[str, float]:
    """The checkpoints of a classifier that is fine-tuned with AdamW."""
    device, model = open_device(0), make_model("classifier", config, 0, "sdpa")
    read_method({}, method).tune(model, "classifier")
    optimizers = make_optimizers(model, OptimizerSettings(kind="adamw"), 1e-4)
    trained = [weight for weight in model.parameters() if weight.requires_grad]
    for weight in trained:
        weight.grad = torch.zeros_like(weight)
    for optimizer in optimizers:
        optimizer.step()
    kept = {name: weight.clone() for name, weight in gather_weights(model, only_trained=True).items()}
    checkpointer = Checkpointer("benchmark", method, device)
    waited, written, size = [], [], 0
    for step in range(ROUNDS):
        began = time.monotonic()
        checkpointer.save(model, optimizers, Position(step=step), [], kept)
        waited.append(time.monotonic() - began)
        checkpointer.wait()
        written.append(time.monotonic() - began)
        size = sum(path.stat().st_size for path in Path(os.environ["DVC_ROOT"]).rglob(f"{step:09d}/*"))
    checkpointer.remove()
    return {
        "million_parameters": round(sum(weight.numel() for weight in model.parameters()) / 1e6, 1),
        "million_trained": round(sum(weight.numel() for weight in trained) / 1e6, 3),
        "mebibytes": round(size / 2**20, 2),
        "seconds_waited": round(statistics.median(waited), 3),
        "seconds_written": round(statistics.median(written), 3),
    }


if __name__ == "__main__":
    main()
