"""Classes: a pretrained model + a task's examples → {models,predictions}/<task>/<method>/<seed>.

The task is SST-2 of the data source, or one that `classification` in params.yaml describes. Writes the kept epoch's
weights, and what the model answers on the validation set before the first and after each epoch; `stages.evaluate`
scores it.

    accelerate launch --config_file launch/one.yaml -m stages.finetune_sst2 --task sst2 --method full --seed 1
"""

from retrace.core.errors import exit_cleanly
from retrace.core.paths import source_folder, task_folder
from retrace.core.pipeline import CLASSES, check_method
from retrace.core.settings import Precision, build, check_value, profile_key, read_params, values_of
from retrace.finetuning.method import read_method
from retrace.finetuning.run import read_cell, run_cell
from retrace.finetuning.settings import FineTuneSettings
from retrace.models.heads import read_config, takes_segments
from retrace.tasks.classification import Classification
from retrace.tokens.tokenizer import load_tokenizer


def main() -> None:
    cell, params = read_cell("sst2", others=True), read_params()
    check_method(params, cell.method, CLASSES)
    method = read_method(params, cell.method, cell.task)
    key = profile_key(params, cell.task)
    settings = build(FineTuneSettings, params, key)
    source = source_folder(check_value(params, "data", str))
    precision = check_value(params, "precision", Precision)

    def read_task() -> Classification:
        tokenizer, segments = load_tokenizer(method.base), takes_segments(read_config(method.base))
        return Classification(cell.task, source, tokenizer, settings.max_length, segments)

    read = values_of(params, ["data", "precision", key, f"methods.{cell.method}"])
    run_cell(cell, method, read_task, settings, precision, [source, task_folder(cell.task)], read)


if __name__ == "__main__":
    exit_cleanly(main)
