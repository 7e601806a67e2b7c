"""Pretraining: models/tokens, and the checkpoint in data/model → models/pretrained, reports/curves/pretrain.

Trains a masked language model, or a causal one for causal families, on blocks of the training texts. With next-sentence
prediction, BERT is trained on pairs of sentences instead. Training starts from the checkpoint in data/model, or from
random weights if there is none. The validation perplexity is measured before training and after every epoch.

    python -m stages.pretrain
"""

from pathlib import Path

import pandas as pd

from retrace.compute.device import named_out_of_memory, open_device
from retrace.compute.sharding import gather_weights
from retrace.core.errors import exit_cleanly
from retrace.core.files import atomic_folder, write_json, write_text
from retrace.core.guard import guarded
from retrace.core.paths import CHECKPOINT, FACTS, PRETRAINED, TOKENIZER, TOKENS, checkpoint_facts, given_checkpoint
from retrace.models.heads import check_length, read_config
from retrace.models.settings import with_family
from retrace.pretraining.run import model_and_objective, open_training, updates_in, validation
from retrace.pretraining.settings import PretrainParams
from retrace.tokens.blocks import open_stream
from retrace.tokens.tokenizer import copy_tokenizer, load_tokenizer
from retrace.training.checkpoint import Checkpointer
from retrace.training.loop import Run, train
from retrace.training.throughput import write_run_record

CURVES, RECORD = Path("reports/curves/pretrain"), Path("reports/runs/pretrain.json")


def main() -> None:
    params = PretrainParams.read()
    recipe = params.pretrain
    device = open_device(params.seed, params.precision)
    inputs = [TOKENIZER, TOKENS, CHECKPOINT]
    with (
        guarded(f"pretrain-{device.rank}", inputs, params.settings) as digest,
        device.together(),
        named_out_of_memory("pretrain"),
    ):
        checkpoint = given_checkpoint()
        if checkpoint:
            check_length("params.yaml: pretrain.block_size", recipe.block_size, read_config(checkpoint), checkpoint)
        tokenizer = load_tokenizer(TOKENIZER)
        stream, running = open_training(TOKENS)
        model, objective = model_and_objective(params, checkpoint, tokenizer, stream, device, running)
        measure = validation(params, tokenizer, open_stream(TOKENS / "valid.npy"), model, device)
        checkpointer = Checkpointer("pretrain", digest(), device)
        most = recipe.max_tokens and updates_in(recipe.max_tokens, objective)
        run = Run("pretrain", model, objective, device, recipe.optimizer, params.lr, recipe.epochs, most, checkpointer)
        speed = train(run, measure)
        weights = gather_weights(model)
        if device.is_main:
            with atomic_folder(PRETRAINED, summed=True) as folder:
                model.save_pretrained(folder, weights)
                copy_tokenizer(TOKENIZER, folder)
                write_json(folder / FACTS, with_family(checkpoint_facts(CHECKPOINT), params.family))
            points = pd.DataFrame(speed.points, columns=["update", "training_loss"]).astype({"update": int})
            with atomic_folder(CURVES) as folder:
                write_text(folder / "epochs.csv", pd.DataFrame(run.journal).to_csv(index=False, lineterminator="\n"))
                write_text(folder / "updates.csv", points.to_csv(index=False, lineterminator="\n", float_format="%.4f"))
            write_run_record(RECORD, speed, device, model)
    checkpointer.remove()  # only after the guard has found everything unchanged


if __name__ == "__main__":
    exit_cleanly(main)
