"""The training loop of pretraining and fine-tuning: deterministic, resumable, on one process or many.

SIGTERM, SIGUSR1, which Slurm sends before the time limit, and Ctrl-C ask a run to stop: it finishes its update, saves a
checkpoint and ends with an exit code of its own. An evaluation is cut short, and repeated after resuming.
"""

import math
import time
from collections.abc import Callable, Iterable, Iterator, Sized
from contextlib import nullcontext
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import islice
from types import FrameType
from typing import Any, Generic, NoReturn, Protocol, TypeVar

import torch
from torch import Tensor, nn

from retrace.compute.device import Device
from retrace.compute.sharding import data_parallel, full_tensor
from retrace.core.errors import DivergedError, Interrupted
from retrace.core.guard import handled
from retrace.training.checkpoint import Checkpointer, Position
from retrace.training.optimizer import make_optimizers, rate_factor, set_rate
from retrace.training.progress import LiveCurves, Meter
from retrace.training.settings import OptimizerSettings
from retrace.training.throughput import Speed, count_flops

POINTS = 100  # of the learning curve; up to twice as many
Batch = TypeVar("Batch", bound=Sized)
Part = TypeVar("Part")


class Objective(Protocol[Batch, Part]):
    """What a model is trained on: batches for each epoch, and their loss."""

    steps: int  # per epoch

    def batches(self, epoch: int) -> Iterable[Batch]:
        """The epoch's batches of examples for all processes, on the host; the same each time."""
        ...

    def sizes(self, batch: Batch) -> tuple[int, int]:
        """The number of targets in a batch, and of tokens without padding."""
        ...

    def part(self, batch: Batch, rows: slice, device: Device) -> Part:
        """Some of a batch's examples, on the device, for one forward pass."""
        ...

    def loss(self, model: nn.Module, part: Part) -> Tensor:
        """The loss summed over the targets, in nats."""
        ...


@dataclass(frozen=True)
class Epoch:
    """A finished epoch, or one cut short by `most_updates`; number 0 is the model before training."""

    number: int
    loss: float | None  # mean training loss per target, nats
    updates: int  # since the beginning of training


@dataclass(frozen=True)
class Run(Generic[Batch, Part]):
    """One training run of a model, and its results so far."""

    title: str
    model: nn.Module
    objective: Objective[Batch, Part]
    device: Device
    optimizer: OptimizerSettings
    lr: float  # peak
    epochs: int
    most_updates: int | None = None  # training ends after these, or after the epochs
    checkpointer: Checkpointer | None = None  # for resuming
    journal: list[Any] = field(default_factory=list)  # results after epoch 0, 1, …; json
    kept: dict[str, Tensor] = field(default_factory=dict)  # the weights of the epoch that is kept so far

    @property
    def updates(self) -> int:
        """The number of updates of the whole run, which the learning-rate schedule spans."""
        most = self.epochs * self.objective.steps
        return most if self.most_updates is None else min(most, self.most_updates)

    def done(self, at: Position) -> float:
        """The share of the updates that is done."""
        return at.step / self.updates if self.updates else 1.0


@dataclass(frozen=True)
class BatchShare(Generic[Part]):
    """This process's share of an update, on its device, and the size of the whole."""

    parts: list[tuple[Part, bool]]  # one for each forward pass, and whether its loss counts
    targets: int  # over all processes
    tokens: int  # likewise, without padding


class _CutShort(BaseException):
    """A signal came during an evaluation."""


def train(run: Run[Batch, Part], after_epoch: Callable[[Epoch, Meter], Any]) -> Speed:
    """Train to the end of the run; the results of `after_epoch(epoch, meter)` are appended to the journal.

    A run with a checkpoint resumes from it. Raises DivergedError if the loss or the gradient is not finite, the
    loss rose or a batch has no target; Interrupted if a signal asked to stop or another process ended.
    """
    model = data_parallel(run.model, run.device)
    flops = _flops_a_token(run, model) if run.updates else 0.0
    run.device.seed_dropout()
    training = Training(run, model)
    at, main = training.at, run.device.is_main
    with (
        Meter(run.title, run.updates, at.step, quiet=not main) as meter,
        LiveCurves(run.title, resumes=at.step > 0, wanted=main) as live,
        handled(training.ask_to_stop),
        run.device.together(),
    ):
        meter.say(*(f"{run.title}  {line}" for line in training.messages))
        if at.epoch < 0:
            training.evaluate(partial(after_epoch, Epoch(0, None, 0), meter))
            at.epoch = 0
        while at.epoch < run.epochs and (at.targets or run.done(at) < 1):
            updates = training.rest_of_epoch()
            meter.resume()
            for share, loss, norm in updates:
                meter.step(share.tokens, loss / share.targets, norm)
                live.log(at.step, loss=at.level, gradient_norm=norm, tokens_per_second=meter.speed)
            epoch = Epoch(at.epoch + 1, at.summed / at.targets, at.step)
            training.evaluate(partial(after_epoch, epoch, meter))
            at.begin_after(epoch.number)
        run.model.eval()  # else a run that resumes at its end would have it in training mode
        training.stop_if_asked()
    seconds = at.seconds + at.waited
    return Speed(at.step, seconds, at.waited, at.evaluating, at.tokens, flops * at.tokens, at.points)


class Training(Generic[Batch, Part]):
    """A run in progress: the model as wrapped for training, its optimizers, its position, and requests to stop.

    It resumes from a checkpoint, if there is one.
    """

    def __init__(self, run: Run[Batch, Part], model: nn.Module) -> None:
        self.run, self.model, self.at = run, model, Position()
        self._asked_to_stop = self._is_interruptible = False
        self.optimizers = make_optimizers(run.model, run.optimizer, run.lr, run.device.bf16)
        self.messages: list[str] = []  # to the user, about resuming
        if run.checkpointer:
            self.at, found = run.checkpointer.restore(run.model, self.optimizers, run.journal, run.kept)
            self.messages = [*found, run.checkpointer.space(self.optimizers)]

    def ask_to_stop(self, number: int, frame: FrameType | None) -> None:
        """Handle a signal: stop after the update, or at once in an evaluation by one process."""
        self._asked_to_stop = True
        if self._is_interruptible:
            self._is_interruptible = False
            raise _CutShort

    def evaluate(self, measure: Callable[[], Any]) -> None:
        """Append a measurement to the journal; several processes, which measure together, finish it before stopping."""
        self.run.model.eval()
        clock = Clock()
        try:
            try:  # a signal may come at any line, that of `finally` included
                self._is_interruptible = self.run.device.processes == 1
                if self._is_interruptible and self._asked_to_stop:
                    raise _CutShort
                measured = measure()
            finally:
                self._is_interruptible = False
        except _CutShort:
            self._stop()
        self.at.evaluating += clock.lap()
        self.run.journal.append(measured)

    def stop_if_asked(self) -> None:
        """Stop if a signal came during the last evaluation.

        A launcher that got it too ends as interrupted, even if its processes end well: without a checkpoint, the run
        would then start over.
        """
        (asked,) = self.run.device.all_reduce_sum([self._asked_to_stop])
        if asked:
            self._stop()

    def rest_of_epoch(self) -> Iterator[tuple[BatchShare[Part], float, float]]:
        """Draw the first batch, and return an iterator that makes the remaining updates of the epoch.

        It yields each update's share, summed loss and gradient norm. A resumed run first draws the epoch's earlier
        batches again; that time is not recorded.
        """
        run, at, clock = self.run, self.at, Clock()
        run.model.train()
        done = at.step - at.epoch * run.objective.steps
        shares = _shares(run, at.epoch + 1, done)
        first = next(shares, None)
        if not done:
            at.waited += clock.lap()
        return self._updates(first, shares)

    def _updates(
        self, share: BatchShare[Part] | None, shares: Iterator[BatchShare[Part]]
    ) -> Iterator[tuple[BatchShare[Part], float, float]]:
        """Make an update with this share, and with each of those after it.

        The next batch is drawn while a GPU computes; then the host waits for the GPU, its only wait in an update.
        """
        run, at, clock = self.run, self.at, Clock()
        while share is not None and run.done(at) < 1:
            set_rate(self.optimizers, rate_factor(run.optimizer, run.done(at), run.updates))
            with run.device.short_timeout():
                figures = self._update(share)
            at.seconds += clock.lap()
            following = next(shares, None)
            drawing, waits = clock.lap(), run.device.is_idle()
            at.waited, at.seconds = at.waited + drawing * waits, at.seconds + drawing * (not waits)
            loss, is_due, is_asked, norm = figures.tolist()
            self._require_finite(loss, norm)
            at.add(loss, share.targets, share.tokens, clock.lap())
            if at.step % max(1, run.updates // POINTS) == 0 or at.step == run.updates:
                at.mark()
            yield share, loss, norm
            self._require_no_spike()
            if is_asked:
                self._stop()
            if run.checkpointer and is_due:
                run.checkpointer.save(run.model, self.optimizers, at, run.journal, run.kept)
            at.seconds += clock.lap()
            share = following

    def _update(self, share: BatchShare[Part]) -> Tensor:
        """Make one update.

        Returns a tensor on the device, over all processes: the loss summed over the targets, nats; above 0 if a
        checkpoint is due; above 0 if a process was asked to stop; the norm of the gradient before clipping.
        """
        run = self.run
        loss = _backward(run, self.model, share)
        is_due = run.checkpointer is not None and run.checkpointer.due()
        own = run.device.send(torch.tensor([is_due, self._asked_to_stop], dtype=torch.float64))
        norm = full_tensor(nn.utils.clip_grad_norm_(run.model.parameters(), run.optimizer.max_grad_norm))
        figures = torch.cat([run.device.all_reduce(torch.cat([loss[None], own])), norm.double()[None]])
        for optimizer in self.optimizers:
            optimizer.step()
            optimizer.zero_grad(set_to_none=True)
        return figures

    def _require_finite(self, loss: float, norm: float) -> None:
        """Raise DivergedError after an update that ruined the weights, before they are saved in a checkpoint."""
        for name, value in (("loss", loss), ("gradient norm", norm)):
            if not math.isfinite(value):
                self._diverged(f"the {name} is {value}", self.at.step)

    def _require_no_spike(self) -> None:
        """Raise DivergedError if the loss rose too far, before that is saved in a checkpoint."""
        at, most = self.at, self.run.optimizer.max_loss_rise
        if most is not None and at.lowest is not None and at.level > at.lowest + most:
            said = f"the loss rose from {at.lowest:.2f} to {at.level:.2f}"
            self._diverged(said, at.step - 1, f", or a higher max_loss_rise than {most}")

    def _diverged(self, said: str, done: int, or_else: str = "") -> NoReturn:
        """Raise DivergedError for the update after `done` others; it is counted from 1."""
        epoch, batch = divmod(done, self.run.objective.steps)
        place = f"step {done + 1} (epoch {epoch + 1}, batch {batch + 1})"
        raise DivergedError(f"{self.run.title}: {said} at {place}; a lower lr than {self.run.lr:g} may help{or_else}")

    def _stop(self) -> NoReturn:
        """Save a checkpoint, if the run has any, and end the run."""
        run, at = self.run, self.at
        if run.checkpointer and at.step:
            run.checkpointer.save(run.model, self.optimizers, at, run.journal, run.kept)
            run.checkpointer.wait()
            run.device.accelerator.wait_for_everyone()  # the launcher kills those that are left when one has ended
        where = "run it again to resume there" if run.checkpointer and at.step else "nothing was saved"
        raise Interrupted(f"{run.title}: asked to stop after step {at.step}; {where}")


def _flops_a_token(run: Run[Batch, Part], model: nn.Module) -> float:
    """FLOPs per token, measured on the first batch without compiling, as compiled models dispatch no operations.

    This is also DistributedDataParallel's first backward pass, after which it regroups gradients by their order of
    arrival. Otherwise the first update after resuming would sum gradients in another order.
    """
    run.model.train()  # in evaluation mode transformers' layers do no activation checkpointing
    run = replace(run, device=replace(run.device, compiler=None))  # and without the padding for compiled models
    share = next(_shares(run, 1))
    (operations,) = run.device.all_reduce_sum([count_flops(model, lambda: _backward(run, model, share))])
    return operations / share.tokens


class Clock:
    """A stopwatch."""

    def __init__(self) -> None:
        self._last = time.monotonic()

    def lap(self) -> float:
        """Seconds since the last lap."""
        last, self._last = self._last, time.monotonic()
        return self._last - last


def _shares(run: Run[Batch, Part], epoch: int, done: int = 0) -> Iterator[BatchShare[Part]]:
    """This process's shares of the epoch's batches; the first `done` are drawn but skipped, to advance generators."""
    for batch in islice(run.objective.batches(epoch), done, None):
        parts = [(run.objective.part(batch, rows, run.device), counts) for rows, counts in run.device.share(len(batch))]
        share = BatchShare(parts, *run.objective.sizes(batch))
        if not share.targets:
            raise DivergedError(f"{run.title}: a batch of epoch {epoch} has no target; all its labels are ignored")
        yield share


def _backward(run: Run[Batch, Part], model: nn.Module, share: BatchShare[Part]) -> Tensor:
    """Compute the gradient of the mean loss over all targets; returns this process's summed loss, in float64.

    Gradients are averaged over processes after the last pass, so losses are divided by the mean number of targets per
    process.
    """
    losses = []
    for number, (part, counts) in enumerate(share.parts, 1):
        averaged_later = getattr(model, "no_sync", nullcontext) if number < len(share.parts) else nullcontext
        with averaged_later():
            with run.device.autocast():
                loss = run.objective.loss(model, part)
            (loss * (run.device.processes / share.targets * counts)).backward()
        losses.append(loss.detach().double() * counts)
    return torch.stack(losses).sum()
