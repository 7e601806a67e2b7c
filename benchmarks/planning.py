"""What `retrace plan` says of operations and memory, beside what training really does and takes.

A few updates of the project's own recipe in a process of its own; what it holds more at its peak than before the
model was made is set against the plan.

    python benchmarks/planning.py                    # the settings in params.yaml, after `dvc repro tokenize`
    python benchmarks/planning.py --project FOLDER
"""

import argparse
import json
import os
import sys
from pathlib import Path

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT))

from own import open_pretraining  # noqa: E402

from retrace.compute.device import peak_memory  # noqa: E402
from retrace.estimates.memory import pretraining_needs  # noqa: E402
from retrace.pretraining.run import load  # noqa: E402
from retrace.training.loop import Budget, Run, train  # noqa: E402

UPDATES = 8


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--project", type=Path, default=ROOT)
    arguments = parser.parse_args()
    os.chdir(arguments.project)
    settings, tokenizer, stream, device = open_pretraining(seed=1)
    recipe = settings.pretrain
    before = peak_memory()
    model, objective = load(settings, None, tokenizer, stream, device)
    budget = Budget(1, updates=UPDATES)
    run = Run("run", model, objective, device, recipe.optimizer, settings.lr, budget)
    speed = train(run, lambda epoch, meter: None)
    held = peak_memory() - before
    needs = pretraining_needs(model.body.config, recipe, recipe.batch_size, device.bf16, device.attention)
    figures = {
        "gigaflops_a_token": {"planned": needs.flops / 1e9, "counted": speed.flops / speed.tokens / 1e9},
        "mebibytes": {"planned": round(needs.peak / 2**20), "held": round(held / 2**20)},
    }
    print(json.dumps(figures, indent=2))


if __name__ == "__main__":
    main()
