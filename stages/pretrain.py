"""Pretraining from scratch: models/tokens → models/pretrained and reports/curves/pretrain.csv.

Masked or, for families whose tokens see only those before them, causal language modelling on blocks of
the running text; `lr` in params.yaml is the peak rate. After each epoch the validation perplexity is
written down.

    accelerate launch --config_file launch/one.yaml -m stages.pretrain
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from tokenizers import Tokenizer

from stages.corpus.blocks import open_stream
from stages.corpus.tokenizer import continuing_tokens, copy_tokenizer, load_tokenizer
from stages.harness.device import open_device
from stages.harness.errors import exit_cleanly
from stages.harness.guard import guarded
from stages.harness.precision import Precision
from stages.harness.progress import Meter
from stages.harness.records import write_text, written_folder
from stages.harness.settings import build, check_value, profile_key, read_params
from stages.nets.heads import Objective, make_config, objective_of
from stages.nets.language_model import make_language_model
from stages.nets.settings import ModelSettings
from stages.nets.vocabulary import Vocabulary
from stages.training.causal import next_tokens, sliding_batches
from stages.training.language import BlockModelling, Label, Labelled, mean_loss
from stages.training.loop import Run, train
from stages.training.masking import Masking, mask_blocks, masked_batches
from stages.training.settings import PretrainSettings, check_pretraining
from stages.training.speed import write_speed
from stages.training.states import States

TOKENIZER, TOKENS = Path("models/tokenizer"), Path("models/tokens")
MODEL, CURVE, SPEED = Path("models/pretrained"), Path("reports/curves/pretrain.csv"), Path("reports/runs/pretrain.json")
EVALUATION_RATE = 0.15  # share of tokens masked in evaluation, whatever it is in training


@dataclass(frozen=True)
class Settings:
    """What params.yaml says about pretraining."""

    lr: float
    seed: int
    family: str
    precision: Precision
    model: ModelSettings
    pretrain: PretrainSettings
    keys: tuple[str, ...]


def main() -> None:
    settings = read_settings()
    device = open_device(settings.seed, settings.precision)
    with guarded(f"pretrain-{device.rank}", [TOKENIZER, TOKENS], settings.keys):
        tokenizer = load_tokenizer(TOKENIZER)
        vocabulary = Vocabulary.of(tokenizer)
        train_stream, valid_stream = (open_stream(TOKENS / f"{part}.npy") for part in ("train", "valid"))
        config = make_config(settings.family, settings.model, vocabulary)
        model = device.placed(make_language_model(config, settings.seed, device.attention))
        recipe = settings.pretrain
        label = labelling(recipe, objective_of(config), tokenizer)
        objective = BlockModelling(train_stream, recipe.block, recipe.batch_size, label, settings.seed, device.place)

        def after_epoch(epoch: int, training_loss: float | None, meter: Meter) -> list[float | None]:
            loss, _ = mean_loss(model, held_out(valid_stream, recipe.block, objective_of(config), vocabulary), device)
            meter.say(f"pretrain  epoch {epoch}  validation loss {loss:.4f}  perplexity {math.exp(loss):.2f}")
            return [epoch, training_loss, loss, math.exp(loss)]

        states = States("pretrain", [TOKENIZER, TOKENS], settings.keys, device)
        run = Run("pretrain", model, objective, device, recipe.optimiser, settings.lr, recipe.epochs, states)
        speed = train(run, after_epoch)
        if device.is_main:
            save(model.body, run.journal)
            write_speed(SPEED, speed, device, sum(weight.numel() for weight in model.parameters()))
            states.remove()
        device.accelerator.wait_for_everyone()


def read_settings() -> Settings:
    """The settings, checked one by one and against each other."""
    params = read_params()
    model, recipe = profile_key(params, "model"), profile_key(params, "pretrain")
    lr = check_value(params, "lr", float)
    settings = Settings(
        lr=lr,
        seed=check_value(params, "seed", int),
        family=check_value(params, "family", str),
        precision=check_value(params, "precision", Precision),
        model=build(ModelSettings, params, model),
        pretrain=build(PretrainSettings, params, recipe),
        keys=("lr", "seed", "family", "precision", model, recipe),
    )
    check_pretraining(lr, settings.model, settings.pretrain, model, recipe)
    return settings


def labelling(recipe: PretrainSettings, objective: Objective, tokenizer: Tokenizer) -> Label:
    """What the model is asked in training."""
    vocabulary = Vocabulary.of(tokenizer)
    if objective == "causal":
        return lambda blocks, generator: next_tokens(blocks, vocabulary)
    continues = torch.tensor(continuing_tokens(tokenizer)) if recipe.whole_words else None
    masking = Masking(recipe.mask_rate, recipe.masked_as, continues)
    return lambda blocks, generator: mask_blocks(blocks, masking, vocabulary, generator)


def held_out(stream: np.ndarray, block: int, objective: Objective, vocabulary: Vocabulary) -> Iterator[Labelled]:
    """What the model is asked of the validation text, the same after every epoch."""
    if objective == "causal":
        return sliding_batches(stream, block, block, vocabulary)
    return masked_batches(stream, block, EVALUATION_RATE, vocabulary)


def save(model, curve: list[list[float | None]]) -> None:
    """Write the weights with their tokenizer, and the curve."""
    with written_folder(MODEL) as folder:
        model.save_pretrained(folder)
        copy_tokenizer(TOKENIZER, folder)
    rows = [",".join("" if value is None else str(value) for value in row) for row in curve]
    write_text(CURVE, "\n".join(["epoch,training_loss,validation_loss,perplexity", *rows]) + "\n")


if __name__ == "__main__":
    exit_cleanly(main)
