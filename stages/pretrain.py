"""Pretraining: models/tokens, and data/model to start from → models/pretrained and reports/curves/pretrain.csv.

Masked or, for families whose tokens see only those before them, causal language modelling on blocks of
the running text, or BERT's pairs of sentences; `lr` in params.yaml is the peak rate. The weights are random ones, or
those of the model in data/model where there is one. Before the first and after each epoch the validation perplexity
is written down.

    accelerate launch --config_file launch/one.yaml -m stages.pretrain
"""

import math
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Literal

import numpy as np
import torch
from torch import Tensor
from transformers import PreTrainedModel

from retrace.compute.device import Device, open_device
from retrace.compute.sharding import gather_weights, to_device
from retrace.core.errors import InputError, exit_cleanly
from retrace.core.files import atomic_folder, write_text
from retrace.core.guard import guarded
from retrace.core.paths import CHECKPOINT, given_checkpoint
from retrace.models.heads import longest_input, make_config, objective_of, read_config
from retrace.models.language_model import (
    LanguageModel,
    PairModel,
    continue_model,
    make_language_model,
    make_pair_model,
)
from retrace.objectives.language_modelling import BlockModelling, Label, mean_loss, next_tokens, sliding_batches
from retrace.objectives.masked import Masking, mask_blocks, masked_batches
from retrace.objectives.next_sentence import PairModelling, relation_accuracy
from retrace.tokens.blocks import open_stream
from retrace.tokens.tokenizer import (
    SubwordTokenizer,
    Vocabulary,
    closing_tokens,
    continuing_tokens,
    copy_tokenizer,
    load_tokenizer,
)
from retrace.training.checkpoint import Checkpointer
from retrace.training.loop import Budget, Epoch, Objective, Run, train
from retrace.training.pretraining import PretrainParams, PretrainSettings
from retrace.training.progress import Meter
from retrace.training.throughput import write_run_record

TOKENIZER, TOKENS = Path("models/tokenizer"), Path("models/tokens")
MODEL, CURVE, SPEED = Path("models/pretrained"), Path("reports/curves/pretrain.csv"), Path("reports/runs/pretrain.json")
LARGEST = math.log(sys.float_info.max)  # of a loss, in nats, whose perplexity can be written down
EVALUATION_RATE = 0.15  # share of tokens masked in evaluation, whatever it is in training


def main() -> None:
    params = PretrainParams.read()
    recipe = params.pretrain
    device = open_device(params.seed, params.precision)
    with guarded(f"pretrain-{device.rank}", [TOKENIZER, TOKENS, CHECKPOINT], params.settings) as guard:
        checkpoint = given_checkpoint()
        check_block(recipe, checkpoint)
        tokenizer = load_tokenizer(TOKENIZER)
        train_stream, valid_stream = (open_stream(TOKENS / f"{part}.npy") for part in ("train", "valid"))
        model, objective = start(params, checkpoint, tokenizer, train_stream, device)
        evaluate = evaluation(params, tokenizer, valid_stream, model, device)
        checkpointer = Checkpointer("pretrain", guard.digest(), device)
        run = Run("pretrain", model, objective, device, recipe.optimizer, params.lr, budget(recipe), checkpointer)
        speed = train(run, evaluate)
        weights = gather_weights(model)
        if device.is_main:
            save(model.body, weights, run.journal)
            write_run_record(SPEED, speed, device, model)
    checkpointer.remove()  # not before the guard has found everything as it was


def check_block(recipe: PretrainSettings, checkpoint: Path | None) -> None:
    """Raise an InputError where a block is longer than what the checkpoint reads."""
    longest = longest_input(read_config(checkpoint)) if checkpoint else recipe.block_size
    if recipe.block_size > longest:
        raise InputError(
            f"params.yaml: pretrain.block_size: {recipe.block_size} is not allowed; "
            f"expected at most what {checkpoint} reads ({longest})"
        )


def start(
    params: PretrainParams, checkpoint: Path | None, tokenizer: SubwordTokenizer, stream: np.ndarray, device: Device
) -> tuple[LanguageModel | PairModel, Objective]:
    """The model with its first weights, and what it is to learn from the training text."""
    recipe, seed = params.pretrain, params.seed
    size = (recipe.block_size, recipe.batch_size)
    model = first_model(params, checkpoint, Vocabulary.of(tokenizer), device.attention)
    keep_within_documents(model, tokenizer, recipe)
    model = to_device(model, device)
    if isinstance(model, PairModel):
        return model, PairModelling(stream, tokenizer, *size, masking(recipe, tokenizer), seed, device.torch_device)
    label = labelling(recipe, objective_of(model.body.config), tokenizer)
    return model, BlockModelling(stream, *size, label, seed, device.torch_device)


def first_model(
    params: PretrainParams, checkpoint: Path | None, vocabulary: Vocabulary, attention: str
) -> LanguageModel | PairModel:
    """The model to start from, or one with random weights."""
    pairs, seed = params.pretrain.next_sentence, params.seed
    if checkpoint:
        return continue_model(checkpoint, vocabulary, pairs, seed, attention)
    config = make_config(params.family, params.model, vocabulary)
    return (make_pair_model if pairs else make_language_model)(config, seed, attention)


def keep_within_documents(
    model: LanguageModel | PairModel, tokenizer: SubwordTokenizer, recipe: PretrainSettings
) -> None:
    """Say in the model's config which token begins a document, where attention is to stay within documents."""
    config = model.body.config
    if not recipe.intra_document_attention:
        if hasattr(config, "document_start"):  # of a model to start from
            config.document_start = None
        return
    if "sliding_attention" in (getattr(config, "layer_types", None) or ()):
        raise InputError(
            "params.yaml: pretrain.intra_document_attention: true is not allowed; "
            "some layers of the model see only near tokens"
        )
    config.document_start = Vocabulary.of(tokenizer).begin


def budget(recipe: PretrainSettings) -> Budget:
    """How long to train."""
    updates = math.ceil(recipe.max_tokens / (recipe.batch_size * recipe.block_size)) if recipe.max_tokens else None
    return Budget(recipe.epochs, updates, recipe.max_seconds)


def masking(recipe: PretrainSettings, tokenizer: SubwordTokenizer) -> Masking:
    """What is masked in training, and how."""
    if not recipe.whole_word_mask:
        return Masking(recipe.mask_rate, recipe.mask_replacement)
    continues, closes = (torch.tensor(found(tokenizer)) for found in (continuing_tokens, closing_tokens))
    return Masking(recipe.mask_rate, recipe.mask_replacement, continues, closes)


def labelling(recipe: PretrainSettings, objective: Literal["masked", "causal"], tokenizer: SubwordTokenizer) -> Label:
    """What the model is asked of a block in training."""
    vocabulary, chosen = Vocabulary.of(tokenizer), masking(recipe, tokenizer)
    if objective == "causal":
        return lambda blocks, generator: next_tokens(blocks, vocabulary)
    return lambda blocks, generator: mask_blocks(blocks, chosen, vocabulary, generator)


def evaluation(
    params: PretrainParams,
    tokenizer: SubwordTokenizer,
    stream: np.ndarray,
    model: LanguageModel | PairModel,
    device: Device,
) -> Callable[[Epoch, Meter], dict[str, float | None]]:
    """What is written down after each epoch, of the validation text: a row of the learning curve."""
    asked = model if isinstance(model, LanguageModel) else model.of_tokens
    vocabulary, recipe = Vocabulary.of(tokenizer), params.pretrain
    size, fixed = (recipe.block_size, recipe.batch_size), Masking(EVALUATION_RATE)
    pairs = PairModelling(stream, tokenizer, *size, fixed, 0, device.torch_device) if recipe.next_sentence else None

    def after_epoch(epoch: Epoch, meter: Meter) -> dict[str, float | None]:
        if objective_of(model.body.config) == "causal":
            batches = sliding_batches(stream, recipe.block_size, recipe.block_size, vocabulary)
        else:
            batches = masked_batches(stream, recipe.block_size, EVALUATION_RATE, vocabulary)
        loss, _ = mean_loss(asked, batches, device)
        if not math.isfinite(loss):
            raise InputError(
                f"pretrain: the validation loss is {loss} after epoch {epoch.number}; "
                f"a lower lr than {params.lr} may help"
            )
        row = {"epoch": epoch.number, "training_loss": epoch.loss, "validation_loss": loss}
        row["perplexity"] = math.exp(loss) if loss <= LARGEST else None
        if pairs is not None:
            row["next_sentence_accuracy"] = relation_accuracy(model, pairs.batches(0, slice(None)), device)
        if recipe.max_seconds is not None:  # elsewhere no time stands among the results, which would differ each time
            row["seconds"] = round(epoch.seconds, 1)
        found = [(name, value) for name, value in list(row.items())[2:] if value is not None]
        said = "  ".join(f"{name.replace('_', ' ')} {value:.4f}" for name, value in found)
        meter.say(f"pretrain  epoch {epoch.number}  {said}")
        return row

    return after_epoch


def save(body: PreTrainedModel, weights: dict[str, Tensor], curve: list[dict[str, float | None]]) -> None:
    """Write the weights, which are those of a model around the body, with their tokenizer, and the curve."""
    with atomic_folder(MODEL) as folder:
        body.save_pretrained(folder, state_dict={name.removeprefix("body."): weights[name] for name in weights})
        copy_tokenizer(TOKENIZER, folder)
    rows = [",".join("" if value is None else str(value) for value in row.values()) for row in curve]
    write_text(CURVE, "\n".join([",".join(curve[0]), *rows]) + "\n")


if __name__ == "__main__":
    exit_cleanly(main)
