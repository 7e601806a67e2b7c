"""A pretraining run: the initial model, what it is trained on, its validation and its files."""

import math
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import torch
from torch import Tensor
from transformers import PreTrainedModel

from retrace.compute.device import Device
from retrace.compute.sharding import to_device
from retrace.core.errors import InputError
from retrace.core.files import atomic_folder
from retrace.models.heads import make_config, objective_of
from retrace.models.language_model import (
    LanguageModel,
    PairModel,
    continue_model,
    make_language_model,
)
from retrace.objectives.language_modelling import (
    BlockModelling,
    LabelledBatch,
    Masking,
    mask_blocks,
    masked_batches,
    mean_loss,
    next_tokens,
    sliding_batches,
)
from retrace.objectives.next_sentence import PairModelling, relation_accuracy
from retrace.pretraining.settings import PretrainParams, PretrainSettings
from retrace.tokens.tokenizer import SubwordTokenizer, Vocabulary, closing_tokens, continuing_tokens, copy_tokenizer
from retrace.training.loop import Budget, Epoch, Objective
from retrace.training.progress import Meter

MAX_LOSS = math.log(sys.float_info.max)  # nats; the perplexity of a larger loss is no float
EVALUATION_RATE = 0.15  # share of tokens masked in validation, whatever it is in training


def load(
    params: PretrainParams, checkpoint: Path | None, tokenizer: SubwordTokenizer, stream: np.ndarray, device: Device
) -> tuple[LanguageModel, Objective]:
    """The model with its initial weights, and the objective on the training text."""
    recipe, vocabulary = params.pretrain, Vocabulary.of(tokenizer)
    model = to_device(_initial_model(params, checkpoint, vocabulary, device.attention), device)
    sizes, masking = (recipe.block_size, recipe.batch_size), _masking(recipe, tokenizer)
    if isinstance(model, PairModel):
        return model, PairModelling(stream, tokenizer, *sizes, masking, params.seed)

    def label(blocks: Tensor, generator: torch.Generator) -> LabelledBatch:
        if objective_of(model.body.config) == "causal":
            return next_tokens(blocks, vocabulary)
        return mask_blocks(blocks, masking, vocabulary, generator)

    return model, BlockModelling(stream, *sizes, label, params.seed)


def training_budget(recipe: PretrainSettings) -> Budget:
    """How long to train."""
    updates = math.ceil(recipe.max_tokens / (recipe.batch_size * recipe.block_size)) if recipe.max_tokens else None
    return Budget(recipe.epochs, updates)


def validation(
    params: PretrainParams,
    tokenizer: SubwordTokenizer,
    stream: np.ndarray,
    model: LanguageModel,
    device: Device,
) -> Callable[[Epoch, Meter], dict[str, float | None]]:
    """A function that measures the model on the validation text: a row of the learning curve for each epoch."""
    language_model = model.of_tokens if isinstance(model, PairModel) else model
    vocabulary, recipe = Vocabulary.of(tokenizer), params.pretrain
    size, fixed = (recipe.block_size, recipe.batch_size), Masking(EVALUATION_RATE)
    pairs = PairModelling(stream, tokenizer, *size, fixed, 0) if recipe.next_sentence else None

    def after_epoch(epoch: Epoch, meter: Meter) -> dict[str, float | None]:
        if objective_of(model.body.config) == "causal":
            batches = sliding_batches(stream, recipe.block_size, recipe.block_size, vocabulary)
        else:
            batches = masked_batches(stream, recipe.block_size, EVALUATION_RATE, vocabulary)
        loss, _ = mean_loss(language_model, batches, device)
        if not math.isfinite(loss):
            raise InputError(
                f"pretrain: the validation loss is {loss} after epoch {epoch.number}; "
                f"a lower lr than {params.lr} may help"
            )
        figures = {"validation_loss": loss, "perplexity": math.exp(loss) if loss <= MAX_LOSS else None}
        if pairs is not None:
            figures["next_sentence_accuracy"] = relation_accuracy(model, pairs.batches(0, with_rest=True), device)
        shown = (f"{name.replace('_', ' ')} {value:.4f}" for name, value in figures.items() if value is not None)
        meter.say(f"pretrain  epoch {epoch.number}  " + "  ".join(shown))
        return {"epoch": epoch.number, "training_loss": epoch.loss, **figures}

    return after_epoch


def save_model(folder: Path, body: PreTrainedModel, weights: dict[str, Tensor], tokenizer: Path) -> None:
    """Write the weights of a `LanguageModel` around `body`, with the files of its tokenizer."""
    with atomic_folder(folder, summed=True) as temporary:
        body.save_pretrained(temporary, state_dict={name.removeprefix("body."): weights[name] for name in weights})
        copy_tokenizer(tokenizer, temporary)


def _initial_model(
    params: PretrainParams, checkpoint: Path | None, vocabulary: Vocabulary, attention: str
) -> LanguageModel:
    """The model of the checkpoint, or one with random weights.

    Raises InputError where its attention cannot stay within documents although it should.
    """
    pairs, seed = params.pretrain.next_sentence, params.seed
    if checkpoint:
        model = continue_model(checkpoint, vocabulary, pairs, seed, attention)
    else:
        config = make_config(params.family, params.model, vocabulary)
        model = make_language_model(config, seed, attention, pairs)
    config = model.body.config
    if params.pretrain.intra_document_attention:
        if "sliding_attention" in (getattr(config, "layer_types", None) or ()):
            raise InputError(
                "params.yaml: pretrain.intra_document_attention: true is not allowed; "
                "the model has layers with sliding attention"
            )
        config.document_start = vocabulary.begin
    elif hasattr(config, "document_start"):  # of a checkpoint
        config.document_start = None
    return model


def _masking(recipe: PretrainSettings, tokenizer: SubwordTokenizer) -> Masking:
    if not recipe.whole_word_mask:
        return Masking(recipe.mask_rate, recipe.mask_replacement)
    continues, closes = (torch.tensor(found(tokenizer)) for found in (continuing_tokens, closing_tokens))
    return Masking(recipe.mask_rate, recipe.mask_replacement, continues, closes)
