"""What an update dispatches and waits for, for every family and head; counted rather than timed, so it needs no GPU.

Models have as many layers as published ones but tiny widths, matrix products in bf16 and the attention used on GPUs
(sdpa). Counted in the second update: waits (how often the host waits for values from the device), kernels (dispatched
operations other than views, including Muon's), casts among them, and forward passes of the body. The time is that of
drawing a batch of BERT-base's size, 16 blocks of 512 tokens from a vocabulary of 30,522, which a GPU's computation
would hide.

    python benchmarks/engine.py        # a minute; writes engine.json
"""

import os
import statistics
import tempfile
from pathlib import Path
from typing import Any

from harness import seconds_in_turn, write_result

from retrace.compute.device import Device, open_device
from retrace.models.settings import ModelSettings
from retrace.objectives.language_modelling import Masking
from retrace.tokens.tokenizer import Vocabulary
from tests.counting import CASES, count_update, make_run
from tests.tiny import random_blocks

LAYERS = {"modernbert": 22, "bert": 12, "roberta": 12, "llama": 16}
DRAWN = 20  # batches whose median time is taken
BLOCK, BATCH, VOCABULARY = 512, 16, Vocabulary(30_522, *range(5))
MASKINGS = {"masked": Masking(0.15), "masked as BERT's": Masking(0.15, "80-10-10"), "next tokens": None}


def main() -> None:
    device, found = open_device(0, "bf16"), {}
    for family, kind in CASES:
        with tempfile.TemporaryDirectory() as folder:
            os.environ["DVC_ROOT"] = folder
            found[f"{family}, {kind}"] = counted(family, kind, Path(folder), device)
    drawing = {name: round(milliseconds_to_draw(masking), 2) for name, masking in MASKINGS.items()}
    write_result("engine", {"updates": found, "milliseconds_to_draw": drawing})


def counted(family: str, kind: str, folder: Path, device: Device) -> dict[str, float]:
    """The row of a family and a head."""
    sizes = ModelSettings(hidden_size=64, layers=LAYERS[family], heads=2, intermediate_size=128, max_positions=64)
    run = make_run(family, kind, folder, "sdpa", device, sizes)
    body: Any = getattr(run.model, "body", run.model)
    passes: list[int] = []
    body.base_model.register_forward_hook(lambda *call: passes.append(1))
    update = count_update(run)
    return {
        "waits": sum(update.waits.values()),
        "kernels": update.kernels,
        "casts": update.casts,
        "forward passes": len(passes) / 2,  # of two updates
    }


def milliseconds_to_draw(masking: Masking | None) -> float:
    """The median time to draw a batch of random text."""
    batches = random_blocks(VOCABULARY, BLOCK, BATCH, masking, DRAWN).batches(1)
    return 1000 * statistics.median(seconds_in_turn({"draw": lambda: next(batches)}, DRAWN)["draw"])


if __name__ == "__main__":
    main()
