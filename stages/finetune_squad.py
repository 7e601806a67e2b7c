"""Question answering: a pretrained model + a set of questions → {models,predictions}/<task>/<method>/<seed>.

The set is SQuAD or one that data/params.yaml defines. Writes the weights of the kept epoch; and for `stages.evaluate`,
before training and after each epoch, the best span or the generated answer to every validation question, with its score
and the null score.

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
