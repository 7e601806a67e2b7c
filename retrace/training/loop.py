"""The training loop of pretraining and fine-tuning: deterministic, resumable, on one process or many.

SIGTERM, and SIGUSR1, which Slurm sends before the time limit, ask a run to stop: it finishes its update, saves a
checkpoint and ends with an exit code of its own.
"""

import math
import signal
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import islice
from types import FrameType
from typing import Any, Generic, Protocol, TypeVar

from torch import Tensor, nn
from torch.optim import Optimizer

from retrace.compute.device import Device
from retrace.compute.sharding import data_parallel, full_tensor
from retrace.core.errors import InputError, Interrupted
from retrace.training.checkpoint import Checkpointer, Position
from retrace.training.optimizer import make_optimizers, rate_factor, set_rate
from retrace.training.progress import LiveCurves, Meter
from retrace.training.settings import OptimizerSettings
from retrace.training.throughput import Speed, count_flops

SIGNALS = (signal.SIGTERM, signal.SIGUSR1)
POINTS = 100  # of the curve by update; up to twice as many
Batch = TypeVar("Batch")


class Objective(Protocol[Batch]):
    """What a model is trained on: batches for each epoch, and their loss."""

    steps: int  # an epoch

    def batches(self, epoch: int, rank_slice: slice) -> Iterable[Batch]:
        """The epoch's batches, this process's rows of each; the same every time."""
        ...

    def loss(self, model: nn.Module, batch: Batch) -> tuple[Tensor, int]:
        """The loss summed over a batch's targets, in nats, and the number of targets."""
        ...

    def tokens(self, batch: Batch) -> int:
        """The number of tokens in the batch, without padding."""
        ...


@dataclass(frozen=True)
class Budget:
    """How long a run trains: until the first of these is used up. The learning-rate schedule spans the budget."""

    epochs: int
    updates: int | None = None
    seconds: float | None = None  # of training; the result then depends on the machine


@dataclass(frozen=True)
class Epoch:
    """An epoch that is done, or was cut short by the budget; number 0 is the model before training."""

    number: int
    loss: float | None  # mean training loss per target, nats
    seconds: float  # of training since the beginning


@dataclass(frozen=True)
class Run(Generic[Batch]):
    """One training run of a model, and its results so far."""

    title: str
    model: nn.Module
    objective: Objective[Batch]
    device: Device
    optimizer: OptimizerSettings
    lr: float
    budget: Budget
    checkpointer: Checkpointer | None = None  # for resuming
    journal: list[Any] = field(default_factory=list)  # results after epoch 0, 1, …; json
    kept: dict[str, Tensor] = field(default_factory=dict)  # such as the weights of the best epoch

    @property
    def updates(self) -> int:
        """The largest number of updates that the budget allows."""
        most = self.budget.epochs * self.objective.steps
        return most if self.budget.updates is None else min(most, self.budget.updates)

    def done(self, at: Position) -> float:
        """The share of the budget that is used up."""
        by_time = at.elapsed / self.budget.seconds if self.budget.seconds else 0.0
        return max(at.step / self.updates if self.updates else 1.0, by_time)


@dataclass(frozen=True)
class Update:
    """One update, over all processes."""

    loss: float  # summed over the targets, nats
    targets: int
    tokens: int  # without padding
    norm: float  # of the gradient, before clipping
    elapsed: float  # seconds of training before it, on the main process
    save: bool  # whether a checkpoint is due
    stop: bool  # whether some process was asked to stop


@contextmanager
def noted_signals() -> Iterator[list[int]]:
    """Note the signals that ask a run to stop instead of ending the process."""
    received: list[int] = []

    def note(number: int, frame: FrameType | None) -> None:
        received.append(number)

    before = {number: signal.signal(number, note) for number in SIGNALS}
    try:
        yield received
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def train(run: Run[Batch], after_epoch: Callable[[Epoch, Meter], Any]) -> Speed:
    """Train until the budget is used up; what `after_epoch(epoch, meter)` returns is appended to the journal.

    A run that has a checkpoint resumes from there. Raises InputError where the loss or the gradient is not finite or
    the loss has diverged, Interrupted where a signal asked to stop.
    """
    model = data_parallel(run.model, run.device)
    flops = _flops_a_token(run, model) if run.updates else 0.0
    run.device.seed_dropout()
    optimizers = make_optimizers(run.model, run.optimizer, run.lr, run.device.bf16)
    at, messages = Position(), []
    if run.checkpointer:
        at, messages = run.checkpointer.restore(run.model, optimizers, run.journal, run.kept)
    main = run.device.is_main
    with (
        Meter(run.title, run.updates, at.step, run.done(at), quiet=not main) as meter,
        LiveCurves(run.title, resumes=at.step > 0, wanted=main) as live,
        noted_signals() as signals,
    ):
        meter.say(*(f"{run.title}  {line}" for line in messages))
        if at.epoch < 0:
            run.model.eval()
            run.journal.append(after_epoch(Epoch(0, None, 0.0), meter))
            at.epoch = 0
        while at.epoch < run.budget.epochs and (at.targets or run.done(at) < 1):
            meter.resume()
            for update in _rest_of_epoch(run, model, optimizers, at, signals):
                meter.step(update.tokens, update.loss / update.targets, update.norm, run.done(at))
                live.log(at.step, loss=at.level, gradient_norm=update.norm, tokens_per_second=meter.speed)
            run.model.eval()
            epoch = Epoch(at.epoch + 1, at.summed / at.targets, at.seconds + at.waited)
            run.journal.append(after_epoch(epoch, meter))
            at.begin_after(epoch.number)
    return Speed(at.step, at.seconds + at.waited, at.waited, at.tokens, flops * at.tokens, at.points)


def _flops_a_token(run: Run[Batch], model: nn.Module) -> float:
    """Operations per token, measured on this process's rows of the first batch.

    This is also DistributedDataParallel's first backward pass, after which it groups gradients anew, by the order in
    which they came. Otherwise the first update after resuming would sum three processes' gradients in another order.
    """
    batch = next(iter(run.objective.batches(1, run.device.rank_slice)))

    def loss() -> Tensor:
        with run.device.autocast():
            return run.objective.loss(model, batch)[0]

    return count_flops(model, loss) / max(1, run.objective.tokens(batch))


class Clock:
    """Measures one thing after another."""

    def __init__(self) -> None:
        self._last = time.monotonic()

    def lap(self) -> float:
        """Seconds since the last lap."""
        last, self._last = self._last, time.monotonic()
        return self._last - last


def _rest_of_epoch(
    run: Run[Batch], model: nn.Module, optimizers: list[Optimizer], at: Position, signals: list[int]
) -> Iterator[Update]:
    """Make the remaining updates of the epoch, as far as the budget allows.

    Batches before those are drawn too, so that all generators stay in step.
    """
    run.model.train()
    clock = Clock()
    batches = run.objective.batches(at.epoch + 1, run.device.rank_slice)
    for batch in islice(batches, at.step - at.epoch * run.objective.steps, None):
        if run.done(at) >= 1:
            return
        at.waited += clock.lap()
        set_rate(optimizers, rate_factor(run.done(at), run.optimizer.warmup_ratio, run.optimizer.decay_start))
        update = _update(run, model, optimizers, batch, at, signals)
        at.add(update.loss, update.targets, update.tokens, clock.lap())
        at.elapsed = update.elapsed
        if at.step % max(1, run.updates // POINTS) == 0:
            at.mark()
        yield update
        _require_no_spike(run, at)
        _keep(run, optimizers, at, update)
        at.seconds += clock.lap()


def _update(
    run: Run[Batch], model: nn.Module, optimizers: list[Optimizer], batch: Batch, at: Position, signals: list[int]
) -> Update:
    """Make one update.

    Gradients are averaged over processes, so each process's sum is divided by the mean number of targets: processes
    count by their number of targets.
    """
    with run.device.autocast():
        loss, count = run.objective.loss(model, batch)
    due, asked_to_stop = run.checkpointer is not None and run.checkpointer.due(), bool(signals)
    elapsed = at.seconds + at.waited if run.device.is_main else 0.0
    mine = [loss.item(), count, run.objective.tokens(batch), elapsed, due, asked_to_stop]
    summed, targets, tokens, elapsed, saving, stopping = run.device.all_reduce_sum(mine)
    _require_finite(run, summed, "loss", at.step)
    run.device.accelerator.backward(loss * (run.device.processes / targets))
    norm = full_tensor(nn.utils.clip_grad_norm_(run.model.parameters(), run.optimizer.max_grad_norm)).item()
    _require_finite(run, norm, "norm of the gradient", at.step)
    for optimizer in optimizers:
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
    return Update(summed, int(targets), int(tokens), norm, elapsed, saving > 0, stopping > 0)


def _require_finite(run: Run[Batch], value: float, name: str, done: int) -> None:
    """Stop before an update that would ruin the weights."""
    if not math.isfinite(value):
        raise InputError(
            f"{run.title}: the {name} is {value} at {_place(run, done)}; a lower lr than {run.lr} may help"
        )


def _require_no_spike(run: Run[Batch], at: Position) -> None:
    """Stop where the loss has diverged, before that is saved in a checkpoint."""
    most = run.optimizer.max_loss_rise
    if most is not None and at.lowest is not None and at.level > at.lowest + most:
        raise InputError(
            f"{run.title}: the loss rose from {at.lowest:.2f} to {at.level:.2f} at {_place(run, at.step - 1)}; "
            f"a lower lr than {run.lr} may help, or a higher max_loss_rise than {most}"
        )


def _place(run: Run[Batch], done: int) -> str:
    """The update after `done` others, counted from 1."""
    epoch, batch = divmod(done, run.objective.steps)
    return f"step {done + 1} (epoch {epoch + 1}, batch {batch + 1})"


def _keep(run: Run[Batch], optimizers: list[Optimizer], at: Position, update: Update) -> None:
    """Save a checkpoint where one is due; end the run where it was asked to stop."""
    if run.checkpointer and (update.save or update.stop):
        run.checkpointer.save(run.model, optimizers, at, run.journal, run.kept)
    if update.stop:
        where = "run it again to resume there" if run.checkpointer else "nothing was kept"
        raise Interrupted(f"{run.title}: asked to stop after step {at.step}; {where}")
