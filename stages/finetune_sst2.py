"""Sentiment: models/pretrained + data/<source>/sst2 → {models,predictions}/sst2/<method>/<seed>.

Writes the best epoch's weights, and what the model answers on the validation set before the first
and after each epoch; `stages.evaluate` scores it.

    accelerate launch --config_file launch/one.yaml -m stages.finetune_sst2 --method full --seed 1
"""

from stages.corpus.source import source_folder
from stages.corpus.tokenizer import load_tokenizer
from stages.harness.errors import exit_cleanly
from stages.harness.precision import Precision
from stages.harness.settings import build, check_value, profile_key, read_params
from stages.tasks.sst2 import Sentiment
from stages.training.cell import PRETRAINED, Cell, read_cell, run_cell
from stages.training.settings import FineTuneSettings


def main() -> None:
    cell: Cell = read_cell("sst2")
    params = read_params()
    key = profile_key(params, "sst2")
    settings = build(FineTuneSettings, params, key)
    source = source_folder(check_value(params, "data", str))
    task = Sentiment(source, load_tokenizer(PRETRAINED), settings.max_length)
    precision = check_value(params, "precision", Precision)
    run_cell(cell, task, settings, precision, inputs=[source], keys=["data", "precision", key])


if __name__ == "__main__":
    exit_cleanly(main)
