"""A run that is cut off anywhere goes on from its last state to the same bytes."""

import io
import itertools
import math
import os
import re
import shutil
import signal
import subprocess
import sys
import threading
from contextlib import redirect_stdout
from pathlib import Path
from types import SimpleNamespace
from typing import Any, NamedTuple

import pytest
import torch
from safetensors import safe_open

from retrace.compute.device import open_device
from retrace.core.errors import DivergedError, InputError, Interrupted
from retrace.core.settings import Precision
from retrace.models.language_model import make_language_model
from retrace.objectives.language_modelling import masked_batches, mean_loss
from retrace.training import checkpoint
from retrace.training.checkpoint import Checkpointer, Position
from retrace.training.loop import Epoch, Run, Training, train
from retrace.training.optimizer import make_optimizers
from retrace.training.progress import Meter
from retrace.training.settings import OptimizerSettings
from tests import warm
from tests.sharded import STREAM, TOKENIZER, VOCABULARY, start
from tests.tiny import tiny_config, tiny_device
from tests.unit.compute.test_launch import two_processes

EPOCHS, STEPS = 2, 4  # steps of an epoch


class CutOffError(Exception):
    """The power fails."""


def _fail() -> None:
    raise CutOffError


class Done(NamedTuple):
    """What a run ended with."""

    weights: dict[str, torch.Tensor]
    journal: list[Any]
    said: list[str]


def _run(at: int | None = None, action: Any = _fail) -> Done:
    """Train with dropout from the newest state.

    `action` comes before the update number `at` of this part; what it returns is added to the loss of that update.
    """
    device = tiny_device()
    config = tiny_config("modernbert", TOKENIZER, dropout=0.1)
    model, objective = start("modernbert", False, device, config=config)
    loss, passes = objective.loss, itertools.count(-1)  # the first pass counts operations

    def interrupted(model: torch.nn.Module, part: Any) -> torch.Tensor:
        more = action() if next(passes) == at else None
        return loss(model, part) + (more or 0.0)

    objective.loss, objective.steps = interrupted, STEPS
    checkpointer = Checkpointer("test", "", device)
    run = Run("test", model, objective, device, OptimizerSettings(), 0.002, EPOCHS, checkpointer=checkpointer)

    def after_epoch(epoch: Epoch, meter: Meter) -> list[float | None]:
        loss = mean_loss(model, masked_batches(STREAM[:320], 32, 0.15, VOCABULARY), device)
        run.kept.update({name: value.clone() for name, value in model.state_dict().items() if "norm" in name})
        return [epoch.number, epoch.loss, loss]

    try:
        with redirect_stdout(io.StringIO()) as said:
            speed = train(run, after_epoch)
        assert not model.training, "fine-tuning may predict a test set next"
        checkpointer.remove()
    finally:
        checkpointer.close()
    found = {**model.state_dict(), **{f"kept {name}": value for name, value in run.kept.items()}}
    return Done(found, [*run.journal, speed.points], said.getvalue().splitlines())


def _cut_off(at: int) -> None:
    """Train until the power fails before this update of this part."""
    with pytest.raises(CutOffError):
        _run(at)


@pytest.fixture(autouse=True)
def _every_step(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RETRACE_SAVE_SECONDS", "0")
    monkeypatch.setenv("DVC_ROOT", str(tmp_path))


def _saved(root: Path) -> list[Path]:
    return sorted(path for path in root.glob(".retrace/states/*/*") if path.name.isdigit())


def _same(one: Done, two: Done) -> bool:
    weights = all(torch.equal(one.weights[name], two.weights[name]) for name in one.weights | two.weights)
    return weights and one.journal == two.journal


def test_a_run_cut_off_anywhere_ends_with_the_same_bytes(tmp_path: Path) -> None:
    whole = _run()
    assert not _saved(tmp_path)
    for at in range(EPOCHS * STEPS):
        _cut_off(at)
        assert len(_saved(tmp_path)) == min(at, 2)
        assert _same(_run(), whole), f"cut off before step {at + 1}"


def test_a_run_with_micro_batches_ends_with_the_same_bytes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RETRACE_MICRO_BATCH", "5")  # of batches of eight
    whole = _run()
    _cut_off(7)
    resumed = _run()
    assert _same(resumed, whole)
    assert "test  resuming after step 3" in resumed.said
    _cut_off(7)
    monkeypatch.setenv("RETRACE_MICRO_BATCH", "2")  # rounds differently
    assert _run().said[0].startswith("test  not resuming after step 3: saved on CPU")


def test_a_run_may_be_cut_off_repeatedly(tmp_path: Path) -> None:
    whole = _run()
    for _ in range(3):
        _cut_off(2)
    assert [int(path.name) for path in _saved(tmp_path)] == [5, 6]
    assert _same(_run(), whole)


@pytest.mark.parametrize("file", ["state.safetensors", "progress.json", ".SHA256SUMS"])
def test_a_damaged_checkpoint_is_noticed_and_the_previous_one_used(tmp_path: Path, file: str) -> None:
    whole = _run()
    _cut_off(5)
    damaged = _saved(tmp_path)[-1] / file
    damaged.write_bytes(damaged.read_bytes()[:-1])
    resumed = _run()
    assert _same(resumed, whole)
    assert resumed.said[:2] == [f"test  the checkpoint of step 5 is damaged: {file}", "test  resuming after step 4"]


def test_damaged_checkpoints_of_later_updates_do_not_push_out_new_ones(tmp_path: Path) -> None:
    _cut_off(5)
    for path in _saved(tmp_path):
        (path / "state.safetensors").write_bytes(b"cut")
    _cut_off(2)
    assert [int(path.name) for path in _saved(tmp_path)] == [1, 2]
    assert "test  resuming after step 2" in _run().said


def test_what_a_killed_writer_left_is_removed_by_the_next_one(tmp_path: Path) -> None:
    """The next one writes other updates; else every kill would leave a checkpoint on disk until the run ends."""
    _cut_off(2)
    left = _saved(tmp_path)[-1].with_name(".000000007.partial")
    left.mkdir()
    (left / "state.safetensors").write_bytes(b"cut")
    _cut_off(2)  # steps 3 and 4
    assert not left.exists()


def test_a_checkpoint_of_other_hardware_is_reported_and_used_only_if_asked_for(tmp_path: Path, monkeypatch) -> None:
    monkeypatch.setenv("RETRACE_THREADS", "1")
    whole = _run()
    _cut_off(3)
    monkeypatch.setenv("RETRACE_THREADS", "2")
    hardware = "saved on CPU with .*, 1 × 1 threads, fp32, torch .*; this is .*, 1 × 2 threads, fp32, torch .*"
    assert re.fullmatch(f"test  not resuming after step 3: {hardware}", _run().said[0])
    monkeypatch.setenv("RETRACE_RESUME_ANYWHERE", "true")
    resumed = _run()
    assert re.fullmatch(f"test  resuming after step 3, {hardware}", resumed.said[0])
    torch.testing.assert_close(resumed.weights, whole.weights, rtol=1e-4, atol=1e-5)
    assert resumed.journal[-1] == [[step, pytest.approx(loss, rel=1e-4)] for step, loss in whole.journal[-1]]
    assert not list(tmp_path.glob(".retrace/states/*")), "the checkpoints of both are removed"


def _folder(digest: str = "", precision: Precision = "fp32") -> Path:
    """Where the checkpoints of a run are."""
    checkpointer = Checkpointer("test", digest, open_device(0, precision))
    checkpointer.close()
    return checkpointer._folder


def test_a_limit_of_the_processors_instructions_is_other_hardware(monkeypatch: pytest.MonkeyPatch) -> None:
    folders = set[Path]()
    for limit in ("", "AVX512_CORE_BF16"):
        monkeypatch.setenv("ONEDNN_MAX_CPU_ISA", limit)
        folders.add(_folder())
    assert len(folders) == 2


@pytest.mark.parametrize(("precision", "kinds"), [("bf16", 2), ("fp32", 1)])
def test_a_processor_with_amx_is_other_hardware_in_bf16(monkeypatch, precision: Precision, kinds: int) -> None:
    """As in a cluster of both kinds; float32 has the same instructions on both."""
    folders = set[Path]()
    for has_amx in (True, False):
        monkeypatch.setattr(torch.cpu, "get_capabilities", lambda has_amx=has_amx: {"amx_tile": has_amx})
        folders.add(_folder(precision=precision))
    assert len(folders) == kinds


@pytest.mark.parametrize("is_damaged", [False, True])
def test_the_newest_sound_checkpoint_is_used_wherever_it_was_saved(tmp_path: Path, monkeypatch, is_damaged) -> None:
    for threads, anywhere, updates in (("1", "true", 2), ("2", "true", 3), ("1", "false", 2)):  # to steps 2, 5 and 4
        monkeypatch.setenv("RETRACE_THREADS", threads)
        monkeypatch.setenv("RETRACE_RESUME_ANYWHERE", anywhere)
        _cut_off(updates)
    monkeypatch.setenv("RETRACE_RESUME_ANYWHERE", "true")
    if is_damaged:
        newest = max(_saved(tmp_path), key=lambda path: path.name)
        (newest / "state.safetensors").write_bytes(b"cut")
        expected = ["test  the checkpoint of step 5 is damaged: state.safetensors", "test  resuming after step 4"]
        assert _run().said[:2] == expected, "its own, which the other hardware's sound ones are not ahead of"
    else:
        assert _run().said[0].startswith("test  resuming after step 5, saved on CPU")


def test_a_checkpoint_is_a_snapshot_without_frozen_weights(tmp_path: Path) -> None:
    model = make_language_model(tiny_config("modernbert", TOKENIZER), 0, "eager")
    for name, weight in model.named_parameters():
        weight.requires_grad = name.endswith("norm.weight")
    optimizers = make_optimizers(model, OptimizerSettings(kind="adamw"), 0.1)
    before = {name: weight.clone() for name, weight in model.state_dict().items()}
    torch.stack([weight.sum() for weight in model.parameters()]).sum().backward()
    optimizers[0].step()
    after = {name: weight.clone() for name, weight in model.state_dict().items()}
    checkpointer, journal = Checkpointer("test", "", tiny_device()), [{"kept": True}]
    checkpointer.save(model, optimizers, Position(step=1), journal, {})
    journal[0]["kept"] = False
    model.load_state_dict(before)
    checkpointer.wait()
    with safe_open(_saved(tmp_path)[0] / "state.safetensors", framework="pt") as file:
        saved = {name for name in file.keys() if name.startswith("model/")}  # noqa: SIM118 - not a dict
    assert saved == {f"model/{name}" for name in after if not torch.equal(before[name], after[name])}
    checkpointer.restore(model, optimizers, journal, {})
    assert journal == [{"kept": True}]
    assert all(torch.equal(weight, after[name]) for name, weight in model.state_dict().items())
    checkpointer.remove()


def test_a_checkpoint_that_cannot_be_written_stops_the_run() -> None:
    model, checkpointer = torch.nn.Linear(1, 1), Checkpointer("test", "", tiny_device())
    checkpointer._folder.write_text("in the way")
    checkpointer.save(model, [], Position(step=1), [], {})
    with pytest.raises(OSError, match="File exists"):
        checkpointer.save(model, [], Position(step=2), [], {})
    checkpointer.close()


def test_other_code_and_inputs_begin_anew() -> None:
    assert _folder("one") == _folder("one") != _folder("two")


def test_a_second_process_at_the_same_run_has_checkpoints_of_its_own(tmp_path: Path) -> None:
    whole = _run()
    other = Checkpointer("test", "", tiny_device())  # of a worker that shares the folder
    _cut_off(3)
    other.remove()  # the first of two workers is done; the second was killed
    resumed = _run()
    assert _same(resumed, whole)
    assert "test  resuming after step 3" in resumed.said
    assert not list(tmp_path.glob(".retrace/states/*"))


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGUSR1, signal.SIGINT])
def test_a_signal_ends_the_step_and_saves(tmp_path: Path, number: signal.Signals) -> None:
    whole = _run()
    handler = signal.getsignal(number)
    with pytest.raises(Interrupted, match="test: asked to stop after step 4; run it again to resume there"):
        _run(3, lambda: os.kill(os.getpid(), number))
    assert int(_saved(tmp_path)[-1].name) == 4
    assert signal.getsignal(number) is handler
    assert _same(_run(), whole)


@pytest.mark.parametrize("epoch", [0, 1, EPOCHS])
def test_a_signal_cuts_an_evaluation_short(monkeypatch: pytest.MonkeyPatch, epoch: int) -> None:
    whole, measured, evaluate = _run(), itertools.count(), mean_loss

    def asked(*arguments: Any) -> float:
        found = evaluate(*arguments)
        if next(measured) == epoch:
            os.kill(os.getpid(), signal.SIGTERM)
            pytest.fail("the evaluation goes on")
        return found

    steps = epoch * STEPS
    with monkeypatch.context() as patch:
        patch.setitem(globals(), "mean_loss", asked)
        then = "run it again to resume there" if steps else "nothing was saved"
        with pytest.raises(Interrupted, match=f"asked to stop after step {steps}; {then}"):
            _run()
    resumed = _run()
    assert _same(resumed, whole)
    assert (f"test  resuming after step {steps}" in resumed.said) == (epoch > 0)


def test_a_signal_in_an_evaluation_that_is_not_cut_short_stops_the_run_after_its_last_epoch(monkeypatch) -> None:
    """As of several processes: their launcher fails then, and the next run would begin anew."""
    whole, begin_after = _run(), Position.begin_after

    def asked(at: Position, epoch: int) -> None:
        begin_after(at, epoch)
        if epoch == EPOCHS:
            os.kill(os.getpid(), signal.SIGTERM)

    with monkeypatch.context() as patch:
        patch.setattr(Position, "begin_after", asked)
        with pytest.raises(Interrupted, match=f"asked to stop after step {EPOCHS * STEPS}"):
            _run()
    resumed = _run()
    assert _same(resumed, whole)
    assert f"test  resuming after step {EPOCHS * STEPS}" in resumed.said


def test_a_loss_that_is_not_finite_leaves_the_last_good_checkpoint(tmp_path: Path) -> None:
    whole = _run()
    said = r"^test: the loss is nan at step 4 \(epoch 1, batch 4\); a lower lr than 0\.002 may"
    with pytest.raises(DivergedError, match=said):
        _run(3, lambda: math.nan)
    assert int(_saved(tmp_path)[-1].name) == 3
    assert _same(_run(), whole)


def test_no_checkpoint_is_written_before_it_is_due(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RETRACE_SAVE_SECONDS", "3600")
    _cut_off(5)
    assert not _saved(tmp_path)


def test_a_checkpoint_is_due_so_long_after_the_last_one_and_once_that_is_written(monkeypatch) -> None:
    now, written = [0.0], threading.Event()
    monkeypatch.setenv("RETRACE_SAVE_SECONDS", "100")
    monkeypatch.setattr(checkpoint.time, "monotonic", lambda: now[0])
    monkeypatch.setattr(Checkpointer, "_write", lambda *given: written.wait(60))
    checkpointer = Checkpointer("test", "", tiny_device())

    def due(at: float) -> bool:
        now[0] = at
        return checkpointer.due()

    assert [due(99.0), due(100.0)] == [False, True]
    checkpointer.save(torch.nn.Linear(1, 1), [], Position(step=1), [], {})
    assert [due(199.0), due(200.0)] == [False, False], "it is being written"
    written.set()
    checkpointer.wait()
    assert [due(199.0), due(200.0)] == [False, True]
    checkpointer.close()


@pytest.mark.parametrize("value", ["soon", "-1", "nan"])
def test_a_wrong_interval_is_named(monkeypatch: pytest.MonkeyPatch, value: str) -> None:
    monkeypatch.setenv("RETRACE_SAVE_SECONDS", value)
    with pytest.raises(InputError, match=f"RETRACE_SAVE_SECONDS: '{value}' is not allowed; expected seconds, 0 or"):
        Checkpointer("test", "", tiny_device())


@pytest.mark.parametrize(("kind", "copies"), [("adamw", 4), ("muon", 3)])
def test_the_disk_space_of_checkpoints_is_announced_before_training(monkeypatch, kind: Any, copies: int) -> None:
    """Two checkpoints and the one being written: weights, those kept, and the moments, two of AdamW and one of Muon."""
    layers = torch.nn.ModuleList([torch.nn.Linear(512, 1024, bias=False)])  # 2 MiB
    model = torch.nn.ModuleDict({"body": torch.nn.ModuleDict({"layers": layers})})
    optimizers = make_optimizers(model, OptimizerSettings(kind=kind), 0.1)
    checkpointer = Checkpointer("test", "", tiny_device())
    monkeypatch.setattr(shutil, "disk_usage", lambda _: SimpleNamespace(free=5 * 2**29))
    said = f"takes up to {2 + 3 * copies * 2} MiB of disk space; 2.5 GiB is free"
    assert checkpointer.space(optimizers) == said
    monkeypatch.setattr(shutil, "disk_usage", lambda _: SimpleNamespace(free=2**20))
    with pytest.raises(InputError, match="the trained weights take 2 MiB of disk space; 1 MiB is free"):
        checkpointer.space(optimizers)
    checkpointer.close()


def test_running_sums_by_hand() -> None:
    at = Position()
    for update in range(1, 41):
        at.add(loss=10.0 * (update if update <= 21 else 42 - update), targets=10, tokens=7, seconds=0.5)
        if update == 20:
            assert at.lowest == at.level == 10.5  # the mean of 1 to 20
        if update in (2, 4):
            at.mark()
    assert (at.summed, at.targets, at.level) == (10.0 * (21 * 22 / 2 + 20 * 21 / 2 - 1), 400, 11.5)
    at.begin_after(3)
    recent, points = [float(42 - update) for update in range(21, 41)], [[2, 1.5], [4, 3.5]]
    since = {"since": 4410.0 - 110.0, "targets_since": 360}  # the last point
    assert at == Position(40, 3, recent=recent, lowest=10.5, tokens=280, seconds=20.0, points=points, **since)


def test_a_signal_at_any_line_of_an_evaluation_stops_or_is_noted() -> None:
    for at in range(100):
        training: Any = object.__new__(Training)
        training.at, training._asked_to_stop, training._is_interruptible = Position(), False, False
        model, device, lines = torch.nn.Linear(1, 1), SimpleNamespace(processes=1), itertools.count()
        training.run = SimpleNamespace(model=model, device=device, journal=[], checkpointer=None, title="test")

        def trace(frame: Any, event: str, argument: Any) -> Any:
            if frame.f_code is Training.evaluate.__code__ and event == "line" and next(lines) == at:  # noqa: B023
                training.ask_to_stop(signal.SIGTERM, None)  # noqa: B023
            return trace

        sys.settrace(trace)
        try:
            training.evaluate(lambda: 1.0)
        except Interrupted:
            assert training.run.journal == []
        else:
            assert training.run.journal == [1.0]
        finally:
            sys.settrace(None)
        if not training._asked_to_stop:
            assert at > 5, "there were so many lines"
            return
    pytest.fail("it has no end")


def test_processes_that_see_different_checkpoints_do_not_train(tmp_path: Path) -> None:
    """As on two machines with a folder each; the gradients would be averaged over different models."""
    work = """
import os

import torch

from retrace.compute.device import open_device
from retrace.core.errors import exit_cleanly
from retrace.training.checkpoint import Checkpointer, Position


def work() -> None:
    device, model = open_device(1), torch.nn.Linear(2, 2)
    checkpointer = Checkpointer("test", "", device)
    checkpointer.save(model, [], Position(step=6), [], {})
    checkpointer.wait()
    device.accelerator.wait_for_everyone()
    step = checkpointer.restore(model, [], [], {})[0].step
    os.write(1, f"{step}\\n".encode())  # a line in one piece
    os.chdir("/" if device.rank else ".")
    checkpointer.restore(model, [], [], {})


exit_cleanly(work)
"""
    done = subprocess.run(**two_processes(tmp_path, work, python=warm.COMMAND), capture_output=True, check=False)
    said = r"error: \S+: the processes see checkpoints of different steps \(6, 0\); expected a folder that all machines"
    assert (done.returncode, done.stdout) == (2, "6\n6\n"), done.stderr
    assert len(re.findall(said, done.stderr)) == 2


@pytest.mark.parametrize(
    ("fails", "said"),
    [
        ("raise InputError('the disk is full')", "the disk is full"),
        ("lock = next(Path().glob('.retrace/states/*.lock')); lock.unlink(); lock.mkdir()", "Is a directory"),
    ],
)
def test_a_process_that_ends_with_an_error_leaves_the_others_no_traceback(
    tmp_path: Path, fails: str, said: str
) -> None:
    """Such as the main one, before it removes checkpoints or while it does."""
    work = f"""
import time
from pathlib import Path

from retrace.compute.device import open_device
from retrace.core.errors import InputError, exit_cleanly
from retrace.training.checkpoint import Checkpointer


def work() -> None:
    device = open_device(1)
    checkpointer = Checkpointer("test", "", device)
    if device.is_main:
        time.sleep(1)  # the other one waits
        {fails}
    checkpointer.remove()


exit_cleanly(work)
"""
    done = subprocess.run(**two_processes(tmp_path, work, python=warm.COMMAND), capture_output=True, check=False)
    assert (done.returncode, f"{said}\n" in done.stderr) == (2, True), done.stderr
    assert "Traceback" not in done.stderr
