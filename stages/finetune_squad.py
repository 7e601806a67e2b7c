"""Questions: a pretrained model + data/<source>/squad → {models,predictions}/squad/<method>/<seed>.

Writes the kept epoch's weights, and the best span or the generated answer, its score and the null score of
every validation question before the first and after each epoch; `stages.evaluate` scores them.

    accelerate launch --config_file launch/one.yaml -m stages.finetune_squad --method full --seed 1
"""

from typing import Any

from stages.corpus.source import source_folder
from stages.corpus.tokenizer import load_tokenizer
from stages.harness.errors import exit_cleanly
from stages.harness.pipeline import QUESTIONS, check_method
from stages.harness.precision import Precision
from stages.harness.settings import build, check_value, profile_key, read_params, values_of
from stages.nets.heads import read_config
from stages.tasks.answering import Answering, check_family
from stages.tasks.settings import ReadingSettings
from stages.tasks.squad import Reading
from stages.tasks.task import Task
from stages.training.cell import read_cell, run_cell
from stages.training.methods import read_method
from stages.training.settings import FineTuneSettings

TASKS = {"spans": Reading, "generated": Answering}


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
        return TASKS[reading.answers](source, load_tokenizer(method.base), settings.max_length, reading)

    read = values_of(params, ["data", "precision", key, "squad", f"methods.{cell.method}"])
    run_cell(cell, method, read_task, settings, precision, [source], read)


if __name__ == "__main__":
    exit_cleanly(main)
