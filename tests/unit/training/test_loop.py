"""The training loop: the host waits for a GPU once an update, passes may be made in parts, and some runs end early."""

import itertools
import math
from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any, Literal, cast

import pytest
import torch
from transformers.modeling_layers import GradientCheckpointingLayer

from retrace.compute.device import Device
from retrace.core.errors import DivergedError
from retrace.training import loop
from retrace.training.loop import Epoch, Run, Training, _backward, _shares, train
from retrace.training.settings import OptimizerSettings
from tests.counting import CASES, count_update, make_run
from tests.sharded import start
from tests.tiny import MODEL, tiny_device


@pytest.mark.parametrize("attention", ["lean", "sdpa"])
@pytest.mark.parametrize(("family", "kind"), CASES)
def test_the_host_waits_for_the_device_once_an_update(tmp_path: Path, family: str, kind: str, attention: str) -> None:
    found = count_update(make_run(family, kind, tmp_path, attention, tiny_device()))
    assert +found.waits == {"tolist": 1}


def test_the_next_batch_is_drawn_before_the_host_waits_for_an_update(tmp_path: Path, monkeypatch) -> None:
    run, events = make_run("bert", "classifier", tmp_path, "lean", tiny_device()), cast(list[str], [])

    def note(of: Any, name: str, said: str) -> None:
        step = getattr(of, name)
        monkeypatch.setattr(of, name, lambda *given: events.append(said) or step(*given))

    note(run.objective, "part", "drawn")
    note(Training, "_update", "begun")
    note(Training, "_require_finite", "waited for")
    train(run, lambda epoch, meter: None)
    assert events == ["drawn", "drawn", "begun", "drawn", "waited for", "begun", "waited for"], "the first is counted"


@pytest.mark.parametrize(("idle", "waited"), [(True, 3), (False, 1)])
def test_drawing_a_batch_counts_as_waiting_if_the_device_is_idle(tmp_path: Path, monkeypatch, idle, waited) -> None:
    monkeypatch.setattr(Device, "is_idle", lambda device: idle)
    monkeypatch.setattr(loop, "Clock", lambda: SimpleNamespace(lap=lambda: 1.0))  # everything takes a second
    speed = train(make_run("bert", "classifier", tmp_path, "lean", tiny_device()), lambda epoch, meter: None)
    assert (speed.updates, speed.waited, speed.seconds) == (2, waited, 1 + 2 * 4)
    assert speed.evaluating == 2, "before training and after the epoch"


def test_after_resuming_nothing_counts_until_the_earlier_batches_are_drawn_again(tmp_path: Path, monkeypatch) -> None:
    """Otherwise the time left and the tokens per second would be those of a far slower run."""
    monkeypatch.setattr(Device, "is_idle", lambda device: False)
    run = make_run("bert", "classifier", tmp_path, "lean", tiny_device())
    batches, events = run.objective.batches, cast(list[str], [])
    monkeypatch.setattr(
        run.objective, "batches", lambda epoch: (events.append("drawn") or one for one in batches(epoch))
    )
    training = Training(run, run.model)
    training.at.epoch, training.at.step = 0, 1
    updates = training.rest_of_epoch()
    assert events == ["drawn", "drawn"], "one again, and one for the first update"
    next(updates)
    assert training.at.waited == 0


def test_a_model_has_dropout_in_updates_and_none_in_evaluations(tmp_path: Path) -> None:
    run, modes = make_run("bert", "classifier", tmp_path, "lean", tiny_device()), cast(list[tuple[str, bool]], [])
    loss = run.objective.loss
    run.objective.loss = lambda model, part: modes.append(("update", model.training)) or loss(model, part)
    train(run, lambda epoch, meter: modes.append(("evaluation", run.model.training)))
    assert set(modes) == {("update", True), ("evaluation", False)}


@pytest.mark.parametrize("kind", ["adamw", "muon"])
def test_no_optimizer_sees_a_gradient_above_the_largest_norm(tmp_path: Path, kind: Literal["muon", "adamw"]) -> None:
    settings = OptimizerSettings(kind=kind, max_grad_norm=0.001)
    run = make_run("bert", "classifier", tmp_path, "lean", tiny_device(), optimizer=settings)
    seen: list[float] = []
    training = Training(run, run.model)
    training.at.epoch = 0
    first, step = training.optimizers[0], training.optimizers[0].step

    def noted() -> None:
        gradients = [weight.grad for weight in run.model.parameters() if weight.grad is not None]
        seen.append(torch.cat([gradient.flatten() for gradient in gradients]).norm().item())
        step()

    first.step = noted  # pyright: ignore[reportAttributeAccessIssue]
    norms = [norm for _, _, norm in training.rest_of_epoch()]
    assert min(norms) > 0.002, "before clipping"
    assert seen == pytest.approx([0.001] * len(norms), rel=1e-3)


@pytest.mark.parametrize("kind", ["muon", "adamw"])
@pytest.mark.parametrize(
    ("where", "said"),
    [("loss", "loss is nan"), ("loss alone", "loss is inf"), ("gradient", "gradient norm is nan")],
)
def test_a_loss_or_gradient_that_is_not_finite_ends_the_run_and_names_its_step(
    tmp_path: Path, kind: Literal["muon", "adamw"], where: str, said: str
) -> None:
    settings = OptimizerSettings(kind=kind, warmup_ratio=0.0)
    run = make_run("bert", "language model", tmp_path, "lean", tiny_device(), optimizer=settings)
    objective, loss, passes = run.objective, run.objective.loss, itertools.count(1)

    def spoilt(model: torch.nn.Module, part: Any) -> torch.Tensor:
        if next(passes) < 4:  # the first pass counts operations
            return loss(model, part)
        zero = next(model.parameters()).flatten()[0] * 0.0
        added = {"loss": zero / 0.0, "loss alone": torch.tensor(math.inf), "gradient": zero.sqrt()}
        return loss(model, part) + added[where]

    objective.loss = spoilt
    with pytest.raises(DivergedError, match=rf"the {said} at step 3 \(epoch 1, batch 3\)"):
        train(run, lambda epoch, meter: None)


@pytest.mark.parametrize(("family", "kind"), CASES)
def test_micro_batches_have_the_loss_and_the_gradient_of_the_whole(tmp_path: Path, family: str, kind: str) -> None:
    """Parts have other numbers of targets, other padding, and the last of an epoch fewer examples."""
    device = tiny_device()
    run = make_run(family, kind, tmp_path, "lean", device)
    run.model.eval()  # without dropout
    parted = replace(run, device=replace(device, micro_batch=3))
    batches = list(zip(_shares(run, 1), _shares(parted, 1), strict=True))
    assert len(batches) > 1
    for one, several in batches:
        assert len(one.parts) == 1 < len(several.parts)
        assert (one.targets, one.tokens) == (several.targets, several.tokens)
        (loss, gradient), (summed, accumulated) = (_gradient(run, share) for share in (one, several))
        assert summed == pytest.approx(loss, rel=1e-6)
        torch.testing.assert_close(accumulated, gradient, rtol=1e-5, atol=1e-6)
        assert gradient.abs().max() > 1e-3


def _gradient(run: Run[Any, Any], share: Any) -> tuple[float, torch.Tensor]:
    loss = _backward(run, run.model, share).item()
    found = torch.cat([weight.grad.flatten() for weight in run.model.parameters() if weight.grad is not None])
    run.model.zero_grad()
    return loss, found


@pytest.mark.parametrize(("family", "kind"), CASES)
def test_activation_checkpointing_changes_no_weight_and_no_flops(tmp_path: Path, family: str, kind: str) -> None:
    sizes = MODEL.model_copy(update={"dropout": 0.1})
    kept, again = (
        make_run(family, kind, tmp_path, "lean", device, sizes)
        for device in (tiny_device(), replace(tiny_device(), recomputes=True))
    )
    calls, speeds = [], []
    for run in (kept, again):
        layer = next(module for module in run.model.modules() if isinstance(module, GradientCheckpointingLayer))
        product = next(module for module in layer.modules() if isinstance(module, torch.nn.Linear))
        counted = product.register_forward_hook(lambda *call: calls.append(1))
        torch.manual_seed(1)
        run.model.eval()  # as a model is that was read from its files
        speeds.append(train(replace(run, epochs=1, most_updates=2), lambda epoch, meter: None))
        counted.remove()
    assert speeds[0].flops == speeds[1].flops
    assert speeds[0].points == speeds[1].points
    state = again.model.state_dict()
    assert all(torch.equal(weight, state[name]) for name, weight in kept.model.state_dict().items())
    assert len(calls) == 3 + 6  # one pass to count operations, and two updates


def test_a_maximum_of_updates_cuts_an_epoch_short() -> None:
    seen: list[Epoch] = []
    model, objective = start("modernbert", False, tiny_device())
    run = Run("test", model, objective, tiny_device(), OptimizerSettings(), 0.01, 9, objective.steps + 1)
    speed = train(run, lambda epoch, meter: seen.append(epoch))
    assert [(epoch.number, epoch.updates) for epoch in seen] == [(0, 0), (1, objective.steps), (2, objective.steps + 1)]
    assert speed.tokens == (objective.steps + 1) * 8 * 32
    assert [update for update, _ in speed.points] == [*range(1, objective.steps + 2)], "few updates: each is a point"
    by_update = [loss for _, loss in speed.points]
    assert sum(by_update[:-1]) / objective.steps == pytest.approx(seen[1].loss, rel=0.02)
    assert by_update[-1] == pytest.approx(seen[2].loss)


class Scripted:
    """An objective whose loss is what a list says."""

    def __init__(self, losses: list[float]) -> None:
        self._losses, self.steps = losses, len(losses) // 2

    def batches(self, epoch: int) -> list[list[float]]:
        return [[loss] for loss in self._losses[(epoch - 1) * self.steps : epoch * self.steps]]

    def sizes(self, batch: list[float]) -> tuple[int, int]:
        return 10, 1

    def part(self, batch: list[float], rows: slice, device: Device) -> float:
        return sum(batch[rows])

    def loss(self, model: torch.nn.Module, part: float) -> torch.Tensor:
        return model(torch.zeros(1, 1)).sum() * 0.0 + part * 10


@pytest.mark.parametrize(
    ("losses", "spike", "found"),
    [
        ([3.0] * 30 + [1.0] * 30, 2.0, None),
        ([3.0] * 30 + [9.0] * 6 + [3.0] * 24, 2.0, None),  # a few bad batches are no spike
        ([3.0] * 30 + [9.0] * 30, 2.0, r"rose from 3\.00 to 5\.10 at step 37 \(epoch 2, batch 7\)"),
        ([9.0] * 25 + [1.0] * 25 + [4.0] * 30, 2.0, r"rose from 1\.00 to 3\.10 at step 64 \(epoch 2, batch 24\)"),
        ([3.0] * 30 + [9.0] * 30, None, None),
    ],
)
def test_a_loss_that_rises_far_stops_the_run(losses: list[float], spike: float | None, found: str | None) -> None:
    settings = OptimizerSettings(kind="adamw", max_loss_rise=spike)
    run = Run("test", torch.nn.Linear(1, 1), Scripted(losses), tiny_device(), settings, 0.01, 2)
    with pytest.raises(DivergedError, match=found) if found else nullcontext():
        train(run, lambda epoch, meter: None)


def test_the_rate_follows_the_schedule_of_the_whole_run_which_ends_with_its_epochs() -> None:
    """A quarter of warm-up, and a fall from the half on; of eight updates, though more were allowed."""
    settings, rates = OptimizerSettings(kind="adamw", warmup_ratio=0.25, decay_start=0.5), list[float]()
    model = torch.nn.Linear(1, 1)
    run = Run("test", model, Scripted([1.0] * 8), tiny_device(), settings, 0.1, 2, most_updates=1000)
    training = Training(run, model)
    for training.at.epoch in (0, 1):
        rates += [training.optimizers[0].param_groups[0]["lr"] for _ in training.rest_of_epoch()]
    assert rates == pytest.approx([0.0, 0.05, 0.1, 0.1, 0.1, 0.075, 0.05, 0.025])


def test_the_curve_by_update_ends_with_the_last_one() -> None:
    """Every second of 251 updates is a point, and the last one."""
    settings, losses = OptimizerSettings(kind="adamw"), [1.0] * 252
    run = Run("test", torch.nn.Linear(1, 1), Scripted(losses), tiny_device(), settings, 0.01, 2, most_updates=251)
    assert [step for step, _ in train(run, lambda epoch, meter: None).points] == [*range(2, 251, 2), 251]


def test_without_epochs_the_weights_are_only_evaluated() -> None:
    model, objective = start("modernbert", False, tiny_device())
    before = {name: weight.clone() for name, weight in model.state_dict().items()}
    run = Run("none", model, objective, tiny_device(), OptimizerSettings(), 1e-3, 0)
    speed = train(run, lambda epoch, meter: epoch.number)
    assert run.journal == [0]
    assert (speed.tokens, speed.flops) == (0, 0.0)
    assert all(torch.equal(weight, before[name]) for name, weight in model.state_dict().items())


def test_a_batch_without_a_target_ends_the_run(tmp_path: Path, monkeypatch) -> None:
    run = make_run("bert", "classifier", tmp_path, "lean", tiny_device())
    monkeypatch.setattr(run.objective, "sizes", lambda batch: (0, 5))
    with pytest.raises(DivergedError, match=r"^bert classifier: a batch of epoch 1 has no target; all its labels are"):
        train(run, lambda epoch, meter: None)
