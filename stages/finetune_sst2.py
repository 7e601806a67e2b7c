"""Classification: a pretrained model + a task's examples → {models,predictions}/<task>/<method>/<seed>.

The task is SST-2 or one that data/params.yaml defines. Writes the weights of the kept epoch, and the predictions on the
validation set before training and after each epoch, which `stages.evaluate` scores.

    python -m stages.finetune_sst2 --task sst2 --method full --seed 1
"""

from retrace.core.errors import exit_cleanly
from retrace.core.paths import TASKS
from retrace.finetuning.run import read_cell, run_cell
from retrace.finetuning.settings import FineTuneParams
from retrace.tasks.classification import Classification


def main() -> None:
    cell = read_cell("sst2")
    params = FineTuneParams.read(task=cell.task, method=cell.method)
    run_cell(cell, params, TASKS / cell.task, Classification.read)


if __name__ == "__main__":
    exit_cleanly(main)
