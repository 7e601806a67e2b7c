"""The one training loop, which pretraining and fine-tuning share."""

import math
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Generic, Protocol, TypeVar

from torch import Tensor, nn

from stages.harness.device import Device
from stages.harness.errors import InputError
from stages.harness.progress import Meter
from stages.training.optimisers import make_optimisers, set_rate
from stages.training.schedule import rate_factor
from stages.training.settings import OptimiserSettings

Batch = TypeVar("Batch")


class Objective(Protocol[Batch]):
    """What is learnt: batches for each epoch, and their loss."""

    steps: int  # an epoch

    def batches(self, epoch: int, share: slice) -> Iterable[Batch]:
        """The epoch's batches, each cut to this process's `share`; the same for the same epoch."""
        ...

    def loss(self, model: nn.Module, batch: Batch) -> tuple[Tensor, int]:
        """The summed loss over a batch's targets, in nats, and how many targets there are."""
        ...

    def tokens(self, batch: Batch) -> int:
        """Real tokens in the batch, padding left out."""
        ...


@dataclass(frozen=True)
class Run(Generic[Batch]):
    """One training run of a model."""

    title: str
    model: nn.Module
    objective: Objective[Batch]
    device: Device
    optimiser: OptimiserSettings
    lr: float
    epochs: int


@dataclass(frozen=True)
class Speed:
    """What a run took: seconds of training alone, and real tokens over all processes."""

    seconds: float
    tokens: int


def train(run: Run[Batch], after_epoch: Callable[[int, float | None, Meter], None]) -> Speed:
    """Train for all epochs; `after_epoch(epoch, mean training loss, meter)` is called for epoch 0 too.

    Raises InputError where the loss is no longer finite.
    """
    device, total = run.device, run.epochs * run.objective.steps
    model = device.accelerator.prepare_model(run.model)
    optimisers = make_optimisers(run.model, run.optimiser, run.lr)
    share = slice(device.rank, None, device.processes)
    seconds, tokens, step = 0.0, 0, 0
    with Meter(run.title, total, quiet=not device.is_main) as meter:
        after_epoch(0, None, meter)
        for epoch in range(1, run.epochs + 1):
            started, summed, targets = time.monotonic(), 0.0, 0
            run.model.train()
            meter.resume()
            for batch in run.objective.batches(epoch, share):
                set_rate(optimisers, rate_factor(step / total, run.optimiser.warmup, run.optimiser.flat))
                loss, count = _step(run, model, optimisers, batch)
                step += 1
                if not math.isfinite(loss):
                    raise InputError(
                        f"{run.title}: the loss is {loss} at step {step}; a lower lr than {run.lr} may help"
                    )
                summed, targets = summed + loss, targets + count
                tokens += run.objective.tokens(batch) * device.processes
                meter.step(run.objective.tokens(batch) * device.processes, loss / max(count, 1))
            seconds += time.monotonic() - started
            run.model.eval()
            after_epoch(epoch, summed / targets, meter)
    return Speed(seconds, tokens)


def _step(run: Run[Batch], model: nn.Module, optimisers: list, batch: Batch) -> tuple[float, int]:
    """One update on this process's share; returns the loss summed over all processes, and its targets.

    Processes are weighted by their targets: gradients are averaged over processes, so each one's
    sum is divided by the mean number of targets.
    """
    with run.device.autocast():
        loss, count = run.objective.loss(model, batch)
    summed, targets = run.device.summed([loss.item(), count])
    run.device.accelerator.backward(loss * (run.device.processes / targets))
    nn.utils.clip_grad_norm_(run.model.parameters(), run.optimiser.clip)
    for optimiser in optimisers:
        optimiser.step()
        optimiser.zero_grad(set_to_none=True)
    return summed, int(targets)
