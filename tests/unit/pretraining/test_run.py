import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from retrace.core.errors import DivergedError, InputError
from retrace.models.language_model import LanguageModel, make_language_model
from retrace.objectives.language_modelling import IGNORED, BlockModelling, LabelledBatch
from retrace.pretraining.run import _initial_model, model_and_objective, updates_in, validation
from retrace.pretraining.settings import PretrainParams, PretrainSettings
from retrace.tokens.tokenizer import Vocabulary, word_edges
from retrace.training.loop import Epoch
from retrace.training.progress import Meter
from tests.tiny import MODEL, tiny_config, tiny_device, tiny_stream, tiny_tokenizer

TOKENIZER = tiny_tokenizer()
RECIPE = PretrainSettings(epochs=1, batch_size=4, block_size=32)
SETTINGS = PretrainParams(lr=0.5, seed=1, family="bert", precision="fp32", model=MODEL, pretrain=RECIPE)


def _settings(seed: int = 1, **recipe: Any) -> PretrainParams:
    return SETTINGS.model_copy(update={"seed": seed, "pretrain": RECIPE.model_copy(update=recipe)})


def _row(model: LanguageModel, settings: PretrainParams = SETTINGS) -> dict[str, float | None]:
    """What is written down of a model after an epoch."""
    after_epoch = validation(settings, TOKENIZER, tiny_stream(TOKENIZER, 20), model.eval(), tiny_device())
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
    with pytest.raises(InputError, match=r"intra_document_attention: true is not allowed; the model has layers with"):
        _initial_model(_settings(intra_document_attention=True), tmp_path, Vocabulary.of(TOKENIZER), "eager")


@pytest.mark.parametrize("value", [math.nan, math.inf])
def test_a_validation_loss_that_is_not_finite_ends_the_run(value: float) -> None:
    model = _model()
    torch.nn.init.constant_(next(model.parameters()), value)
    with pytest.raises(
        DivergedError, match=r"pretrain: the validation loss is (nan|inf) after epoch 1; a lower lr than"
    ):
        _row(model)


def _batches(stream: np.ndarray, settings: PretrainParams, running: int = 0, epoch: int = 1) -> LabelledBatch:
    """All batches of an epoch in one."""
    _, objective = model_and_objective(settings, None, TOKENIZER, stream, tiny_device(), running)
    found = list(objective.batches(epoch))
    return LabelledBatch(torch.cat([each.ids for each in found]), torch.cat([each.labels for each in found]))


def test_the_last_epochs_are_of_the_running_text_alone() -> None:
    """Which is the first part of the stream."""
    stream, settings = np.repeat([20, 30], [400, 800]), _settings(epochs=3, text_epochs=2)
    batches = [_batches(stream, settings, 400, epoch) for epoch in (1, 2, 3)]
    assert [set(batch.labels.unique().tolist()) - {IGNORED} for batch in batches] == [{20, 30}, {20}, {20}]


def test_tokens_are_masked_as_the_settings_say() -> None:
    stream, mask = tiny_stream(TOKENIZER), Vocabulary.of(TOKENIZER).mask
    continues = torch.tensor(word_edges(TOKENIZER)[0])
    recipes: list[dict[str, Any]] = [{}, {"mask_replacement": "80-10-10"}, {"whole_word_mask": True}]
    plain, bert, words = (_batches(stream, _settings(mask_rate=0.4, **recipe)) for recipe in recipes)
    assert plain.has_target.sum(1).unique().tolist() == [12]  # of 32
    for batch, shares in ((plain, (1, 1)), (bert, (0.7, 0.9)), (words, (1, 1))):
        assert shares[0] <= (batch.ids[batch.has_target] == mask).float().mean() <= shares[1]
    tokens = words.labels.where(words.has_target, words.ids)
    within = continues[tokens[:, 1:]]
    assert within.any()
    assert torch.equal(words.has_target[:, 1:][within], words.has_target[:, :-1][within])


def test_the_seed_draws_the_weights_and_the_masks() -> None:
    """Of blocks of one token, so that nothing but their masks can differ."""
    stream = np.full(1200, 20)
    one, again, other = (_batches(stream, _settings(seed)).ids for seed in (1, 1, 2))
    assert torch.equal(one, again)
    assert not torch.equal(one, other)
    models = [model_and_objective(_settings(seed), None, TOKENIZER, stream, tiny_device())[0] for seed in (1, 2)]
    assert not torch.equal(*(of.state_dict()["body.bert.embeddings.word_embeddings.weight"] for of in models))


def test_masks_in_validation_are_the_same_whatever_those_of_training() -> None:
    """So that losses of runs with other settings can be compared."""
    expected = _row(_model())["validation_loss"]
    recipes: list[dict[str, Any]] = [{"mask_rate": 0.6}, {"mask_replacement": "80-10-10"}, {"whole_word_mask": True}]
    for recipe in recipes:
        assert _row(_model(), _settings(**recipe))["validation_loss"] == expected


def test_attention_stays_within_documents_as_the_settings_say_and_not_as_the_checkpoint_did(tmp_path: Path) -> None:
    vocabulary = Vocabulary.of(TOKENIZER)
    within = _initial_model(_settings(intra_document_attention=True), None, vocabulary, "eager")
    assert within.body.config.document_start == vocabulary.begin
    within.body.save_pretrained(tmp_path)
    for wanted, start in ((True, vocabulary.begin), (False, None)):
        model = _initial_model(_settings(intra_document_attention=wanted), tmp_path, vocabulary, "eager")
        assert model.body.config.document_start == start
