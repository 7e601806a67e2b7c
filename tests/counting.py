"""Counts what one update of a tiny model dispatches, and how often its host waits for the device; no GPU is needed."""

from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch
from torch import Tensor
from torch.overrides import TorchFunctionMode
from torch.utils._python_dispatch import TorchDispatchMode, _disable_current_modes

from retrace.compute.device import Device
from retrace.finetuning.run import TaskObjective
from retrace.finetuning.settings import FineTuneSettings
from retrace.models.heads import make_config, make_model
from retrace.models.settings import ModelSettings
from retrace.tasks.classification import Classification
from retrace.tasks.question_answering.extractive import ExtractiveTask
from retrace.tasks.question_answering.generative import GenerativeTask
from retrace.training.loop import Objective, Run, Training
from retrace.training.settings import OptimizerSettings
from tests.sharded import TOKENIZER, VOCABULARY, start
from tests.tiny import FAMILIES, MODEL, TEXT, tiny_answers, tiny_questions, tiny_sentences

# Operations whose result the host looks at, or whose shape depends on values.
READ = {"_local_scalar_dense", "nonzero", "masked_select", "equal", "_unique2", "unique_dim"}
INDEXED = {"index", "index_put", "index_put_", "_index_put_impl_", "_unsafe_index"}
NO_KERNEL = ("empty", "_unsafe_view", "_record_function")
FETCHED = {Tensor.tolist, Tensor.numpy, Tensor.cpu}  # which dispatch nothing on CPUs


class Dispatched(TorchDispatchMode):
    """Counts kernels, casts and waits while it is entered."""

    def __init__(self) -> None:
        super().__init__()
        self.kernels, self.casts, self.waits = 0, 0, Counter[str]()

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        result, name = func(*args, **(kwargs or {})), func.overloadpacket.__name__
        by_mask = name in INDEXED and any(isinstance(at, Tensor) and at.dtype == torch.bool for at in args[1])
        self.waits[name] += name in READ or by_mask
        self.casts += name == "_to_copy" and result.dtype != args[0].dtype
        self.kernels += not (func.is_view or name in READ or any(part in name for part in NO_KERNEL))
        return result


class Fetched(TorchFunctionMode):
    """Counts the calls that bring a tensor's values to the host at once."""

    def __init__(self, waits: Counter[str]) -> None:
        super().__init__()
        self._waits = waits

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        self._waits[func.__name__] += func in FETCHED
        return func(*args, **(kwargs or {}))


KINDS = ("language model", "pairs", "classifier", "spans", "answers")
ONLY = {"pairs": "bert", "answers": "llama"}  # kinds of one family
CASES = [(family, kind) for family in FAMILIES for kind in KINDS if ONLY.get(kind, family) == family]


def count_update(run: Run[Any, Any]) -> Dispatched:
    """What the second update of a run dispatches, except for drawing its batch."""
    training = Training(replace(run, objective=Drawn(run.objective)), run.model)
    training.at.epoch = 0
    updates = training.rest_of_epoch()
    next(updates)
    with Dispatched() as found, Fetched(found.waits):
        next(updates)
    return found


class Drawn:
    """An objective whose batches are drawn before they are counted."""

    def __init__(self, objective: Objective[Any, Any]) -> None:
        self._batches, self._part = list(objective.batches(1)), objective.part
        self.steps, self.loss = objective.steps, objective.loss
        self._counts = [objective.sizes(batch) for batch in self._batches]

    def batches(self, epoch: int) -> list[Any]:
        """Those of the first epoch."""
        return self._batches

    def sizes(self, batch: Any) -> tuple[int, int]:
        """Counted on the host, when the batch is drawn."""
        return self._counts[0]

    def part(self, batch: Any, rows: slice, device: Device) -> Any:
        """The objective's, not counted."""
        with _disable_current_modes():
            return self._part(batch, rows, device)


def make_run(
    family: str, kind: str, folder: Path, attention: str, device: Device, sizes: ModelSettings = MODEL,
    optimizer: OptimizerSettings = OptimizerSettings(),  # noqa: B008 - frozen
) -> Run[Any, Any]:  # fmt: skip
    """A run of a family with a head, or with the objective that goes with it, on a few sentences of `folder`."""
    config = make_config(family, sizes, VOCABULARY)
    if kind in ("language model", "pairs"):
        model, objective = start(family, kind == "pairs", device, config=config, attention=attention)
    else:
        task = _task(kind, folder, causal=family == "llama")
        model = task.wrap(make_model(task.head, config, 0, attention, task.classes))
        objective = TaskObjective(task, FineTuneSettings(lr=0.001, epochs=1, batch_size=4, max_length=64), 1)
    return Run(f"{family} {kind}", model, objective, device, optimizer, 0.001, 1)


def _task(kind: str, folder: Path, causal: bool) -> Any:
    if kind == "classifier":
        rows = [f"{' '.join(text.split()[: 5 + number])}\t{number % 2}" for number, text in enumerate(TEXT[:8])]
        return Classification(tiny_sentences(folder, rows), TOKENIZER, 64, causal=causal)
    asked = {f"who founded the guild {'of the town ' * number}?": "Ada Lund" for number in range(8)}
    data = tiny_questions(folder, TEXT[0], asked)
    if kind == "spans":
        return ExtractiveTask(data, TOKENIZER, tiny_answers(64, question_match=True))
    return GenerativeTask(data, TOKENIZER, tiny_answers(64, answers="generative", max_answer_length=8))
