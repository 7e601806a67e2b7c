"""Classification: a pretrained model + a task's examples → {models,predictions}/<task>/<method>/<seed>.

The task is the data source's SST-2, or one under `classification` in data/params.yaml. Writes the kept epoch's weights,
and for `stages.evaluate` the predictions on the validation set before training and after each epoch.

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
