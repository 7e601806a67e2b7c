"""An update, whatever the model: the host of a GPU waits for it once, and passes may be made in parts."""

from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any, Literal, cast

import pytest
import torch
from transformers.modeling_layers import GradientCheckpointingLayer

from retrace.compute.device import Device
from retrace.core.errors import InputError
from retrace.training import loop
from retrace.training.loop import Run, Training, _backward, _shares, train
from retrace.training.settings import OptimizerSettings
from tests.counting import CASES, count_update, make_run
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


@pytest.mark.parametrize("kind", ["muon", "adamw"])
@pytest.mark.parametrize(("where", "named"), [("loss", "loss"), ("gradient", "gradient norm")])
def test_a_loss_or_gradient_of_nan_changes_no_weight_and_names_its_step(
    tmp_path: Path, kind: Literal["muon", "adamw"], where: str, named: str
) -> None:
    settings = OptimizerSettings(kind=kind, warmup_ratio=0.0)
    run = make_run("bert", "language model", tmp_path, "lean", tiny_device(), optimizer=settings)
    objective, before = run.objective, []
    loss = objective.loss

    def spoilt(model: torch.nn.Module, part: Any) -> torch.Tensor:
        before.append({name: weight.clone() for name, weight in model.state_dict().items()})
        if len(before) < 4:  # the first pass counts operations
            return loss(model, part)
        zero = next(model.parameters()).flatten()[0] * 0.0
        return loss(model, part) + (zero / 0.0 if where == "loss" else zero.sqrt())

    objective.loss = spoilt
    with pytest.raises(InputError, match=rf"the {named} is nan at step 3 \(epoch 1, batch 3\)"):
        train(run, lambda epoch, meter: None)
    after = run.model.state_dict()
    assert all(torch.equal(weight, after[name]) for name, weight in before[-1].items())
    assert any(not torch.equal(weight, after[name]) for name, weight in before[-2].items())


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
