"""Training a compiled model: one graph without breaks, few shapes, the same losses, and bytes that survive a kill."""

import logging
import subprocess
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch._dynamo.utils import counters

from retrace.compute.device import Device
from retrace.objectives.language_modelling import BlockModelling, Masking
from retrace.training.checkpoint import _hardware
from retrace.training.loop import Run, train
from retrace.training.settings import OptimizerSettings
from tests.commands import python
from tests.counting import CASES, make_run
from tests.sharded import VOCABULARY, start
from tests.tiny import tiny_device

# Dynamo makes an object of torch's own class for functions with a gradient of their own.
pytestmark = pytest.mark.filterwarnings("ignore:.*should not be instantiated:DeprecationWarning")
WORDS = Masking(0.3, continues=torch.arange(VOCABULARY.size) % 3 == 0)


@pytest.fixture(autouse=True)
def _nothing_compiled(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr(logging.getLogger("torch.__trace"), "disabled", True)  # or pytest captures every line of it
    torch._dynamo.reset()
    counters.clear()
    yield
    torch._dynamo.reset()


def _device(backend: str | None) -> Device:
    return replace(tiny_device(), compiler=backend)


def _losses(run: Run[Any, Any]) -> list[float]:
    torch.manual_seed(1)
    return [loss for _, loss in train(run, lambda epoch, meter: None).points]


@pytest.mark.parametrize(("family", "kind"), CASES)
def test_an_epoch_compiles_one_graph_for_each_of_a_few_shapes(tmp_path: Path, family: str, kind: str) -> None:
    """With attention as on GPUs. A graph that breaks is an error; the losses are those without compiling."""
    plain = _losses(make_run(family, kind, tmp_path, "sdpa", _device(None)))
    run = make_run(family, kind, tmp_path, "sdpa", _device("eager"))
    assert _losses(run) == pytest.approx(plain, rel=1e-5)
    assert not counters["graph_break"]
    assert 1 <= counters["stats"]["unique_graphs"] <= 3
    assert run.objective.steps >= 2


def test_whole_word_masking_has_many_target_counts_but_few_shapes() -> None:
    found = []
    for backend in (None, "eager"):
        model, objective = start("modernbert", False, _device(backend), WORDS, attention="lean")
        shapes = {objective.part(b, slice(None), _device(backend)).at.shape for b in objective.batches(1)}
        run = Run("words", model, objective, _device(backend), OptimizerSettings(), 0.002, 1)
        found.append((len(shapes), _losses(run)))
    (many, plain), (few, compiled) = found
    assert compiled == pytest.approx(plain, rel=1e-5)
    assert few == counters["stats"]["unique_graphs"] <= 4 < many


def test_activation_checkpointing_and_micro_batches_are_compiled_too(tmp_path: Path) -> None:
    plain = _losses(make_run("bert", "classifier", tmp_path, "lean", _device(None)))
    device = replace(_device("aot_eager"), recomputes=True, micro_batch=3)
    assert _losses(make_run("bert", "classifier", tmp_path, "lean", device)) == pytest.approx(plain, rel=1e-5)
    assert counters["stats"]["unique_graphs"]
    assert not counters["graph_break"]


def test_a_model_that_was_compiled_counts_as_other_hardware() -> None:
    """tests/unit/training/test_checkpoint.py has what is done with a checkpoint of other hardware."""
    assert _hardware(_device("eager")) == _hardware(_device(None)).replace(", fp32, ", ", compiled by eager, fp32, ")


PROGRAM = """
import hashlib, os, sys
from dataclasses import replace
from pathlib import Path
import torch._inductor.config
from retrace.compute.sharding import gather_weights
from retrace.training.checkpoint import Checkpointer
from retrace.training.loop import train
from tests.counting import make_run
from tests.tiny import MODEL, tiny_device
torch._inductor.config.cpp.simdlen = 1  # compiles faster
device, kill = tiny_device(), int(sys.argv[2])
sizes = MODEL.model_copy(update={"layers": 1, "dropout": 0.1})
run = make_run("bert", "classifier", Path(sys.argv[1]), "lean", device, sizes)
run = replace(run, epochs=3, checkpointer=Checkpointer("compiled", "", device))
part, shapes = run.objective.part, []
def drawn(*given):
    batch = part(*given)
    if device.compiler:
        shapes.append(batch["ids"].shape[1])
    if len(shapes) == kill:
        run.checkpointer.wait()
        os._exit(9)
    return batch
run.objective.part = drawn
train(run, lambda epoch, meter: None)
run.checkpointer.remove()
weights = b"".join(weight.numpy().tobytes() for _, weight in sorted(gather_weights(run.model).items()))
print(shapes, hashlib.sha256(weights).hexdigest())
"""


@pytest.mark.slow
@pytest.mark.thorough
def test_a_killed_run_ends_with_the_same_bytes_whatever_was_compiled_before(tmp_path: Path, monkeypatch) -> None:
    """By inductor, with dropout; after the kill nothing is compiled, and the first shape is another one."""
    monkeypatch.setenv("RETRACE_COMPILE", "true")
    monkeypatch.setenv("RETRACE_SAVE_SECONDS", "0")
    monkeypatch.setenv("DVC_ROOT", str(tmp_path))
    monkeypatch.setenv("TORCHINDUCTOR_CACHE_DIR", str(tmp_path / "compiled"))

    def run(kill: int = 0) -> subprocess.CompletedProcess[str]:
        return python(PROGRAM, str(tmp_path / "data"), str(kill))

    whole = run()
    assert whole.returncode == 0, whole.stderr
    assert run(kill=6).returncode == 9
    resumed = run()
    assert "resuming after step 4" in resumed.stdout, resumed.stderr
    assert resumed.stdout.split()[-1] == whole.stdout.split()[-1]


@pytest.mark.parametrize(("masking", "varies"), [(Masking(0.3), False), (WORDS, True), (None, True)])
def test_targets_are_rounded_up_only_where_their_number_varies(masking: Masking | None, varies: bool) -> None:
    """As many in each block and batch by plain masking: a compiled model needs no padding of them."""
    stream = np.random.default_rng(1).integers(5, VOCABULARY.size, 16 * 64)
    objective, device = BlockModelling(stream, VOCABULARY, 64, 8, masking, 1), tiny_device()
    (batch, *_) = objective.batches(1)
    plain, compiled = (objective.part(batch, slice(None), of) for of in (device, replace(device, compiler="eager")))
    assert (compiled.at.shape != plain.at.shape) == varies
    assert compiled.at.ndim == (1 if varies else 2)
