import math
from pathlib import Path

import numpy as np
import pytest
import torch

from retrace.core.errors import DivergedError, InputError
from retrace.models.language_model import LanguageModel, make_language_model
from retrace.objectives.language_modelling import BlockModelling
from retrace.pretraining.run import _initial_model, updates_in, validation
from retrace.pretraining.settings import PretrainParams, PretrainSettings
from retrace.tokens.tokenizer import Vocabulary
from retrace.training.loop import Epoch
from retrace.training.progress import Meter
from tests.tiny import MODEL, tiny_config, tiny_device, tiny_stream, tiny_tokenizer

TOKENIZER = tiny_tokenizer()
RECIPE = PretrainSettings(epochs=1, batch_size=4, block_size=32)
SETTINGS = PretrainParams(lr=0.5, seed=1, family="bert", precision="fp32", model=MODEL, pretrain=RECIPE)


def _row(model: LanguageModel) -> dict[str, float | None]:
    """What is written down of a model after an epoch."""
    after_epoch = validation(SETTINGS, TOKENIZER, tiny_stream(TOKENIZER, 20), model.eval(), tiny_device())
    with Meter("test", 1, quiet=True) as meter:
        return after_epoch(Epoch(1, 3.0, 5), meter)


def _model() -> LanguageModel:
    return make_language_model(tiny_config("bert", TOKENIZER), 0, "eager")


@pytest.mark.parametrize(("blocks", "updates"), [(9, 4), (3, 5)])
def test_tokens_are_counted_by_batches_as_they_are(blocks: int, updates: int) -> None:
    """Batches of four blocks of five tokens; of a text of three blocks, two are left after a random offset."""
    objective = BlockModelling(np.arange(blocks * 5), Vocabulary.of(tiny_tokenizer()), 5, 4, None, 1)
    (_, size) = objective.sizes(next(iter(objective.batches(1))))
    assert updates_in(size * updates - 1, objective) == updates
    assert size == {9: 20, 3: 10}[blocks]


def test_a_row_of_the_curve_has_its_epoch_and_updates_and_the_perplexity_of_its_loss() -> None:
    row = _row(_model())  # of Epoch(1, 3.0, 5)
    assert (row["epoch"], row["updates"], row["training_loss"]) == (1, 5, 3.0)
    assert row["perplexity"] == math.exp(row["validation_loss"] or 0)


def test_a_perplexity_too_large_for_a_float_is_absent() -> None:
    model = _model()
    with torch.no_grad():
        for weight in model.parameters():
            weight.normal_(std=1e4, generator=torch.Generator().manual_seed(1))
    row = _row(model)
    assert (row["validation_loss"] or 0) > 710
    assert row["perplexity"] is None


def test_attention_within_documents_needs_a_model_without_sliding_attention(tmp_path: Path) -> None:
    config = tiny_config("modernbert", TOKENIZER)
    config.layer_types = ["full_attention", "sliding_attention"]
    make_language_model(config, 0, "eager").body.save_pretrained(tmp_path)
    settings = SETTINGS.model_copy(update={"pretrain": RECIPE.model_copy(update={"intra_document_attention": True})})
    with pytest.raises(InputError, match=r"intra_document_attention: true is not allowed; the model has layers with"):
        _initial_model(settings, tmp_path, Vocabulary.of(TOKENIZER), "eager")


@pytest.mark.parametrize("value", [math.nan, math.inf])
def test_a_validation_loss_that_is_not_finite_ends_the_run(value: float) -> None:
    model = _model()
    torch.nn.init.constant_(next(model.parameters()), value)
    with pytest.raises(
        DivergedError, match=r"pretrain: the validation loss is (nan|inf) after epoch 1; a lower lr than"
    ):
        _row(model)
