from pathlib import Path
from typing import Any
from unittest.mock import Mock

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from safetensors.torch import load_file

from retrace.compute.tensors import seeded
from retrace.core.errors import DivergedError
from retrace.core.settings import Precision
from retrace.finetuning import run as fine_tuning
from retrace.finetuning.run import TaskObjective, bucketed, fine_tune, run_cell, write_tuned
from retrace.finetuning.settings import FineTuneParams, FineTuneSettings
from retrace.finetuning.task import predict
from retrace.models.heads import make_model
from retrace.results.grid import Cell
from retrace.results.predictions import kept_epoch, read_epochs
from retrace.tasks.classification import Classification
from retrace.training.checkpoint import Checkpointer
from retrace.training.loop import Run, _backward, _shares
from retrace.training.settings import OptimizerSettings
from tests.tiny import one_of, tiny_config, tiny_device, tiny_pretrained, tiny_sentences, tiny_tokenizer

TOKENIZER = tiny_tokenizer()
SETTINGS = FineTuneSettings(lr=0.005, epochs=3, batch_size=8, max_length=32)


@pytest.fixture
def task(tmp_path: Path) -> Classification:
    rows = [f"the {noun} was {word}\t{label}" for noun in ("ale", "hall", "river", "town", "year")
             for word, label in (("charming", 1), ("stale", 0), ("full", 1), ("the guild of stale", 0))]  # fmt: skip
    return Classification(tiny_sentences(tmp_path, rows), TOKENIZER, 32)


def _model() -> torch.nn.Module:
    return make_model("classifier", tiny_config("modernbert", TOKENIZER), 0, "eager")


def test_predictions_are_in_order_whatever_the_batches(task: Classification) -> None:
    model, examples = _model().eval(), task.examples("dev")
    small, loss = predict(task, model, examples, 3, tiny_device())
    large, same = predict(task, model, examples, 64, tiny_device())
    alone = np.stack([predict(task, model, [example], 1, tiny_device())[0][0] for example in examples])
    for found in (small, large):
        np.testing.assert_allclose(np.stack(found), alone, atol=1e-5)
    assert loss == pytest.approx(same)
    assert loss == pytest.approx(np.log(2), rel=0.2)


def test_every_epoch_is_written_and_the_best_weights_kept(task: Classification, tmp_path: Path) -> None:
    model = _model()
    write_tuned(tmp_path / "predictions", fine_tune(task, model, SETTINGS, 1, tiny_device(), "t"))
    epochs = read_epochs(tmp_path / "predictions", "classification")
    assert [epoch.number for epoch in epochs] == [0, 1, 2, 3]
    assert epochs[0].training_loss is None
    assert all(len(epoch.rows) == 20 for epoch in epochs)
    best = kept_epoch(epochs)
    assert best.validation_loss < epochs[0].validation_loss
    model.eval()
    scores, loss = predict(task, model, task.examples("dev"), 16, tiny_device())
    assert loss == pytest.approx(best.validation_loss, rel=1e-5)
    np.testing.assert_allclose(best.rows["logit_1"], np.stack(scores)[:, 1], atol=1e-5)


def test_texts_that_are_not_read_whole_are_counted(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """[CLS], three words and [SEP] are five tokens."""
    rows = ["the the the\t0", "the the\t1", "the the the the\t1", "the\t0"]
    task = Classification(tiny_sentences(tmp_path, rows), TOKENIZER, 5)
    fine_tune(task, _model(), SETTINGS.model_copy(update={"epochs": 1, "max_length": 5}), 1, tiny_device(), "t")
    said = [line for line in capsys.readouterr().out.splitlines() if "truncated" in line]
    count = "1 of 4 texts of {} are longer than 5 tokens and truncated"
    assert said == [f"t  {count.format(part)}" for part in ("train", "dev")]


@pytest.mark.parametrize(
    ("keep", "losses", "kept"),
    [("best", [0.1, 0.5, 0.4, 0.4], 2), ("last", [0.1, 0.3, 0.4, 0.5], 3)],  # never the untrained; the first of equals
)
def test_which_epoch_is_kept(task: Classification, monkeypatch, keep: str, losses: list[float], kept: int) -> None:
    found, scores, weights = iter(losses), [np.zeros(2)] * 20, list[dict[str, torch.Tensor]]()

    def predicted(_: Any, model: torch.nn.Module, *rest: Any) -> Any:
        weights.append({name: weight.clone() for name, weight in model.state_dict().items()})
        return scores, next(found)

    monkeypatch.setattr(fine_tuning, "predict", predicted)
    gather = Mock(wraps=fine_tuning.gather_weights)
    monkeypatch.setattr(fine_tuning, "gather_weights", gather)
    model = _model()
    tuned = fine_tune(task, model, SETTINGS.model_copy(update={"checkpoint": keep}), 1, tiny_device(), "t")
    assert gather.call_count == (2 if keep == "best" else 0)
    assert [epoch["loss"]["epoch"] for epoch in tuned.epochs["dev"] if epoch["loss"]["kept"]] == [kept]
    left = model.state_dict()
    assert [all(torch.equal(left[name], each[name]) for name in left) for each in weights].index(True) == kept


@pytest.mark.parametrize("every", ["", "0"])
def test_a_validation_loss_of_nan_ends_the_run(task: Classification, tmp_path: Path, monkeypatch, every: str) -> None:
    """The last update of all may make the weights infinite; no loss and no gradient is computed after it."""
    monkeypatch.setenv("RETRACE_SAVE_SECONDS", every)
    monkeypatch.setenv("DVC_ROOT", str(tmp_path))
    optimiser = OptimizerSettings(kind="adamw", warmup_ratio=0.0)
    last = FineTuneSettings(lr=1e37, epochs=1, batch_size=20, max_length=32, optimizer=optimiser)
    checkpointer = Checkpointer("t", "", tiny_device())
    said = r"^sst2 full 1: the validation loss is nan at epoch 1; a lower lr than 1e\+37"
    with pytest.raises(DivergedError, match=said):
        fine_tune(task, _model(), last, 1, tiny_device(), "sst2 full 1", checkpointer)
    checkpointer.close()


@pytest.mark.parametrize(("precision", "stored"), [("bf16", torch.bfloat16), ("fp32", torch.float32)])
def test_only_the_body_is_stored_in_bf16(here: Path, monkeypatch, precision: Precision, stored: torch.dtype) -> None:
    _prepare()
    found: dict[str, torch.dtype] = {}

    def spy(task: Any, model: torch.nn.Module, *rest: Any) -> Any:
        found.update({name: weight.dtype for name, weight in model.named_parameters()})
        return fine_tune(task, model, *rest)

    monkeypatch.setattr(fine_tuning, "fine_tune", spy)
    cell = _run(1, name="lora", precision=precision)
    assert found["model.layers.0.attn.Wqkv.base_layer.weight"] == stored
    assert {dtype for name, dtype in found.items() if "lora_" in name or "norm" in name} == {torch.float32}
    saved = load_file(f"models/{cell.path}/trained.safetensors")
    assert {weight.dtype for weight in saved.values()} == {torch.float32}


def test_processes_share_a_batch_and_one_without_examples_adds_nothing(task: Classification) -> None:
    settings = FineTuneSettings(lr=0.1, epochs=1, batch_size=19, max_length=32)  # 20 examples: 19 and 1
    objective, model = TaskObjective(task, settings, 1), _model()
    run = Run("test", model, objective, one_of(2, rank=1), OptimizerSettings(), 0.1, 1)
    sizes = [len(batch) for batch in objective.batches(1)]
    assert sorted(sizes) == [1, 19]
    for size, share in zip(sizes, _shares(run, 1), strict=True):
        ((part, counts),) = share.parts
        assert (len(part["ids"]), counts, share.targets) == (max(1, size // 2), size > 1, size)
        loss = _backward(run, model, share)
        assert bool(loss) == counts
        assert any(weight.grad is not None and weight.grad.any() for weight in model.parameters()) == counts
        model.zero_grad()


@given(st.lists(st.integers(1, 50), min_size=1, max_size=200), st.integers(1, 9))
def test_buckets_hold_every_example_once(lengths: list[int], size: int) -> None:
    batches = bucketed(lengths, size, seeded(0, "x"))
    assert sorted(index for batch in batches for index in batch) == list(range(len(lengths)))
    assert max(map(len, batches)) <= size


def test_buckets_waste_little_padding() -> None:
    lengths = torch.randint(5, 60, (2000,), generator=seeded(0, "lengths")).tolist()
    batches = bucketed(lengths, 16, seeded(0, "x"))
    padded = sum(len(batch) * max(lengths[i] for i in batch) for batch in batches)
    assert sum(lengths) / padded > 0.97


def test_the_examples_that_a_seed_draws_are_those_trained_on(task: Classification) -> None:
    """Their numbers are written down, and baselines are fitted to the examples with these numbers."""
    every, settings = task.examples("train"), SETTINGS.model_copy(update={"max_train_examples": 8})
    one, again, other = (TaskObjective(task, settings, seed) for seed in (1, 1, 2))
    for objective in (one, other):
        assert objective.examples == [every[number] for number in objective.drawn or ()]
        assert len(objective.examples) == 8
    assert one.drawn == again.drawn != other.drawn


def test_each_epoch_has_an_order_of_its_own_which_its_seed_gives_again(task: Classification) -> None:
    one, again, other = (TaskObjective(task, SETTINGS, seed) for seed in (1, 1, 2))
    assert one.batches(1) == again.batches(1)
    assert one.batches(1) != one.batches(2)
    assert one.batches(1) != other.batches(1)


def _run(
    seed: int, method: dict[str, Any] | None = None, name: str = "full", precision: Precision = "fp32", **settings: Any
) -> Cell:
    """A run of a cell on the data and the model in this folder."""
    cell, given = Cell("sst2", name, seed), {"lr": 0.01, "epochs": 1, "batch_size": 2, "max_length": 16} | settings
    read = {"precision": precision, "sst2": given, "methods": {name: method or {}}}
    params = FineTuneParams.read(read, task=cell.task, method=cell.method)
    params.settings.clear()  # there is no params.yaml here, which the guard would compare
    run_cell(cell, params, Path("data/classification/sst2"), Classification.read)
    return cell


def _prepare() -> None:
    tiny_pretrained(Path("models/pretrained"))
    tiny_sentences(Path("data"), ["the ale was stale\t0", "the songs were charming\t1", "the hall was full\t1"])


@pytest.mark.usefixtures("here")
def test_a_run_begins_with_the_head_of_its_seed_and_the_settings_of_its_task_and_method(monkeypatch) -> None:
    _prepare()
    begun, found = list[torch.nn.Module](), list[FineTuneSettings]()

    def begin(task: Any, model: torch.nn.Module, settings: FineTuneSettings, *rest: Any) -> None:
        begun.append(model)
        found.append(settings)
        rest[-1].close()
        raise KeyboardInterrupt

    monkeypatch.setattr(fine_tuning, "fine_tune", begin)
    method = {
        "lr_factor": 2,
        "optimizer": "muon",
        "per_task": {"sst2": {"epochs_factor": 3}, "squad": {"lr_factor": 5}},
    }
    for seed, dropout, entry in ((1, None, None), (2, 0.25, method)):
        with pytest.raises(KeyboardInterrupt):
            _run(seed, entry, dropout=dropout, optimizer={"kind": "adamw"})
    assert [(each.lr, each.epochs, each.optimizer.kind) for each in found] == [(0.01, 1, "adamw"), (0.02, 3, "muon")]
    rates = [{part.p for part in model.modules() if isinstance(part, torch.nn.Dropout)} for model in begun]
    assert rates == [{0.0}, {0.25}]
    one, other = (model.state_dict() for model in begun)
    drawn = {name.partition(".")[0] for name, weight in one.items() if not torch.equal(weight, other[name])}
    assert "classifier" in drawn
    assert "model" not in drawn


def test_a_run_does_not_go_on_where_that_of_another_seed_stopped(here: Path, monkeypatch) -> None:
    _prepare()
    monkeypatch.setenv("RETRACE_SAVE_SECONDS", "0")
    monkeypatch.setenv("DVC_ROOT", str(here))

    def predicted(seed: int) -> list[Any]:
        path = Path("predictions") / _run(seed).path
        return [epoch.rows["logit_1"].tolist() for epoch in read_epochs(path, "classification")]

    def stopped(*given: Any) -> None:
        fine_tune(*given)
        given[-1].close()
        raise KeyboardInterrupt

    alone = predicted(2)
    with monkeypatch.context() as patch:
        patch.setattr(fine_tuning, "fine_tune", stopped)
        with pytest.raises(KeyboardInterrupt):
            _run(1)
    assert list(here.glob(".retrace/states/*/*")), "a checkpoint was left"
    assert predicted(2) == alone
    assert predicted(1) != alone
