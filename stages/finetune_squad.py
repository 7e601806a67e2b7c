"""Question answering: a pretrained model + a set of questions → {models,predictions}/<task>/<method>/<seed>.

The set is the data source's SQuAD, or one under `question_answering` in data/params.yaml. Writes the kept epoch's
weights, and for `stages.evaluate` the best span or the generated answer to every validation question, its score and the
null score, before training and after each epoch.

    python -m stages.finetune_squad --task squad --method full --seed 1
"""

from retrace.core.errors import exit_cleanly
from retrace.core.paths import QUESTIONS
from retrace.finetuning.run import read_cell, run_cell
from retrace.tasks.question_answering.generative import ANSWERING
from retrace.tasks.question_answering.settings import FineTuneAnswerParams


def main() -> None:
    cell = read_cell("squad")
    params = FineTuneAnswerParams.read(task=cell.task, method=cell.method)
    run_cell(cell, params, QUESTIONS / cell.task, ANSWERING[params.task.answers].read)


if __name__ == "__main__":
    exit_cleanly(main)
