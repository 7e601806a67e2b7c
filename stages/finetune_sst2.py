"""Classes: models/pretrained + a task's examples → {models,predictions}/<task>/<method>/<seed>.

The task is SST-2 of the data source, or one that `classification` in params.yaml describes. Writes the best epoch's
weights, and what the model answers on the validation set before the first and after each epoch; `stages.evaluate`
scores it.

    accelerate launch --config_file launch/one.yaml -m stages.finetune_sst2 --task sst2 --method full --seed 1
"""

from stages.corpus.source import source_folder, task_folder
from stages.corpus.tokenizer import load_tokenizer
from stages.harness.errors import exit_cleanly
from stages.harness.precision import Precision
from stages.harness.settings import build, check_value, profile_key, read_params
from stages.nets.heads import read_config, takes_segments
from stages.tasks.classification import Classification
from stages.training.cell import PRETRAINED, Cell, read_cell, run_cell
from stages.training.settings import FineTuneSettings


def main() -> None:
    cell: Cell = read_cell("sst2", others=True)
    params = read_params()
    key = profile_key(params, cell.task)
    settings = build(FineTuneSettings, params, key)
    source = source_folder(check_value(params, "data", str))
    tokenizer, segments = load_tokenizer(PRETRAINED), takes_segments(read_config(PRETRAINED))
    task = Classification(cell.task, source, tokenizer, settings.max_length, segments)
    precision = check_value(params, "precision", Precision)
    run_cell(cell, task, settings, precision, inputs=[source, task_folder(cell.task)], keys=["data", "precision", key])


if __name__ == "__main__":
    exit_cleanly(main)
