"""Questions: a pretrained model + data/<source>/squad → {models,predictions}/squad/<method>/<seed>.

Writes the kept epoch's weights, and the best span or the generated answer, its score and the null score of
every validation question before the first and after each epoch; `stages.evaluate` scores them.

    accelerate launch --config_file launch/one.yaml -m stages.finetune_squad --method full --seed 1
"""

from typing import Any

from retrace.core.errors import exit_cleanly
from retrace.core.paths import source_folder
from retrace.core.pipeline import QUESTIONS, check_method
from retrace.core.settings import Precision, build, check_value, profile_key, read_params, values_of
from retrace.finetuning.method import read_method
from retrace.finetuning.run import read_cell, run_cell
from retrace.finetuning.settings import FineTuneSettings
from retrace.finetuning.task import Task
from retrace.models.heads import read_config
from retrace.tasks.question_answering.extractive import ExtractiveTask
from retrace.tasks.question_answering.generative import GenerativeTask, check_family
from retrace.tasks.question_answering.settings import ReadingSettings
from retrace.tokens.tokenizer import load_tokenizer

TASKS = {"spans": ExtractiveTask, "generated": GenerativeTask}


def main() -> None:
    cell, params = read_cell("squad"), read_params()
    check_method(params, cell.method, QUESTIONS)
    method = read_method(params, cell.method, cell.task)
    key = profile_key(params, "squad")
    settings = build(FineTuneSettings, params, key)
    source = source_folder(check_value(params, "data", str))
    reading = build(ReadingSettings, params, "squad")
    precision = check_value(params, "precision", Precision)

    def read_task() -> Task[Any]:
        if reading.answers == "generated":
            check_family(read_config(method.base).model_type)
        return TASKS[reading.answers](cell.task, source, load_tokenizer(method.base), settings.max_length, reading)

    read = values_of(params, ["data", "precision", key, "squad", f"methods.{cell.method}"])
    run_cell(cell, method, read_task, settings, precision, [source], read)


if __name__ == "__main__":
    exit_cleanly(main)
