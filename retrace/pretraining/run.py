"""The parts of a pretraining run: the initial model, its objective and its validation."""

import math
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import torch

from retrace.compute.device import Device
from retrace.compute.sharding import to_device
from retrace.core.errors import DivergedError, InputError
from retrace.core.files import read_json
from retrace.models.heads import make_config
from retrace.models.language_model import LanguageModel, PairModel, continue_model, make_language_model
from retrace.objectives.language_modelling import BlockModelling, Masking, masked_batches, mean_loss, sliding_batches
from retrace.objectives.next_sentence import PairModelling, relation_accuracy
from retrace.pretraining.settings import PretrainParams
from retrace.tokens.blocks import open_stream
from retrace.tokens.tokenizer import SubwordTokenizer, Vocabulary, word_edges
from retrace.training.loop import Epoch, Objective
from retrace.training.progress import Meter

MAX_LOSS = math.log(sys.float_info.max)  # nats; the perplexity of a larger loss is too large for a float
EVALUATION_RATE = 0.15  # share of tokens masked in validation, independent of training


def updates_in(tokens: int, objective: Objective) -> int:
    """The number of updates that take this many tokens, if all batches are as large as the first."""
    _, size = objective.sizes(next(iter(objective.batches(1))))
    return math.ceil(tokens / size)


def open_training(tokens: Path) -> tuple[np.ndarray, int]:
    """The training stream in a folder of tokens, and how many tokens at its beginning are running text."""
    return open_stream(tokens / "train.npy"), read_json(tokens / "counts.json")["train"].get("running_tokens", 0)


def model_and_objective(
    params: PretrainParams, checkpoint: Path | None, tokenizer: SubwordTokenizer, stream: np.ndarray, device: Device,
    running: int = 0,
) -> tuple[LanguageModel, Objective]:  # fmt: skip
    """The initial model and its objective; the first `running` tokens of the stream are running text."""
    recipe, vocabulary = params.pretrain, Vocabulary.of(tokenizer)
    model = to_device(_initial_model(params, checkpoint, vocabulary, device.attention), device)
    sizes = (recipe.block_size, recipe.batch_size)
    edges = word_edges(tokenizer) if recipe.whole_word_mask else ()
    masking = Masking(recipe.mask_rate, recipe.mask_replacement, *map(torch.tensor, edges))
    if isinstance(model, PairModel):
        return model, PairModelling(stream, tokenizer, *sizes, masking, params.seed)
    masking = None if model.objective == "causal" else masking
    ending = stream[:running] if recipe.text_epochs else None
    mixed = recipe.epochs - recipe.text_epochs
    return model, BlockModelling(stream, vocabulary, *sizes, masking, params.seed, ending, mixed)


def validation(
    params: PretrainParams, tokenizer: SubwordTokenizer, stream: np.ndarray, model: LanguageModel, device: Device
) -> Callable[[Epoch, Meter], dict[str, float | None]]:
    """A function that evaluates the model on the validation text and returns an epoch's row of the learning curve."""
    language_model = model.of_tokens if isinstance(model, PairModel) else model
    vocabulary, recipe = Vocabulary.of(tokenizer), params.pretrain
    size, fixed = (recipe.block_size, recipe.batch_size), Masking(EVALUATION_RATE)
    pairs = PairModelling(stream, tokenizer, *size, fixed, 0) if recipe.next_sentence else None

    def after_epoch(epoch: Epoch, meter: Meter) -> dict[str, float | None]:
        if model.objective == "causal":
            batches = sliding_batches(stream, recipe.block_size, recipe.block_size, vocabulary)
        else:
            batches = masked_batches(stream, recipe.block_size, EVALUATION_RATE, vocabulary)
        loss = mean_loss(language_model, batches, device)
        if not math.isfinite(loss):
            said = f"the validation loss is {loss} after epoch {epoch.number}"
            raise DivergedError(f"pretrain: {said}; a lower lr than {params.lr:g} may help")
        figures = {"validation_loss": loss, "perplexity": math.exp(loss) if loss <= MAX_LOSS else None}
        if pairs is not None:
            figures["next_sentence_accuracy"] = relation_accuracy(model, pairs.batches(0, with_rest=True), device)
        shown = (f"{name.replace('_', ' ')} {value:.4f}" for name, value in figures.items() if value is not None)
        meter.say(f"pretrain  epoch {epoch.number}  " + "  ".join(shown))
        return {"epoch": epoch.number, "updates": epoch.updates, "training_loss": epoch.loss, **figures}

    return after_epoch


def _initial_model(
    params: PretrainParams, checkpoint: Path | None, vocabulary: Vocabulary, attention: str
) -> LanguageModel:
    """The model in the checkpoint, or one with random weights.

    Raises InputError if attention is to stay within documents but the model has sliding attention.
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
            refused = "params.yaml: pretrain.intra_document_attention: true is not allowed"
            raise InputError(f"{refused}; the model has layers with sliding attention")
        config.document_start = vocabulary.begin
    elif hasattr(config, "document_start"):  # of a checkpoint
        config.document_start = None
    return model
