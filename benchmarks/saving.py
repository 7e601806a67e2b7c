"""What saving checkpoints costs: the time of one, as a share of the time between two.

Last result: 0.06 s, 0.05% of the time between two.

python benchmarks/saving.py                    # the settings in params.yaml, after `dvc repro tokenize`
python benchmarks/saving.py --project FOLDER
"""

import argparse
import json
import os
import statistics
import sys
import time
from pathlib import Path

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT))

from own import open_pretraining  # noqa: E402

from retrace.pretraining.run import load  # noqa: E402
from retrace.training.checkpoint import SECONDS, Checkpointer, Position  # noqa: E402
from retrace.training.optimizer import make_optimizers  # noqa: E402

ROUNDS = 7


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--project", type=Path, default=ROOT)
    os.chdir(parser.parse_args().project)
    settings, tokenizer, stream, device = open_pretraining(seed=1)
    model, objective = load(settings, None, tokenizer, stream, device)
    optimizers = make_optimizers(model, settings.pretrain.optimizer, settings.lr)
    objective.loss(model, next(iter(objective.batches(1, device.rank_slice))))[0].backward()
    for optimizer in optimizers:
        optimizer.step()
    checkpointer, times = Checkpointer("benchmark", "", device), []
    for step in range(ROUNDS):
        began = time.monotonic()
        checkpointer.save(model, optimizers, Position(step=step), [], {})
        times.append(time.monotonic() - began)
    checkpointer.remove()
    taken = statistics.median(times)
    print(json.dumps({"seconds": round(taken, 3), "every": SECONDS, "percent": round(100 * taken / SECONDS, 2)}))


if __name__ == "__main__":
    main()
