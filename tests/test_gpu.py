"""What only a GPU can show: exact repetition of a killed run, waits, losses against a CPU's, planned memory, leases.

It is skipped where there is no GPU.

    pytest tests/test_gpu.py
"""

import subprocess
import sys
import time
import warnings
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest
import torch
from accelerate.state import AcceleratorState
from torch import Tensor, nn
from torch._dynamo.utils import counters

from retrace.compute.device import Device, open_device
from retrace.compute.sharding import gather_weights
from retrace.estimates.memory import Load, update_needs
from retrace.models.heads import make_config, make_model
from retrace.models.language_model import LanguageModel
from retrace.models.settings import ModelSettings
from retrace.objectives.language_modelling import Masking
from retrace.tokens.tokenizer import Vocabulary
from retrace.training.checkpoint import Checkpointer
from retrace.training.loop import Objective, Run, Training, train
from retrace.training.settings import OptimizerSettings
from tests.counting import CASES, make_run
from tests.tiny import FAMILIES, MODEL, random_blocks
from tests.toy import ROOT

if not torch.cuda.is_available():
    pytest.skip("there is no GPU", allow_module_level=True)
pytestmark = pytest.mark.filterwarnings("ignore:.*should not be instantiated:DeprecationWarning")  # of Dynamo's

MUON, DROPOUT = OptimizerSettings(kind="muon"), MODEL.model_copy(update={"dropout": 0.1})
EACH = pytest.mark.parametrize(("family", "kind"), CASES)


@pytest.fixture(autouse=True)
def _on_the_gpu(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Accelerate keeps the device that the first test of a process has: the CPU of the others, or this GPU."""
    monkeypatch.delenv("ACCELERATE_USE_CPU")
    AcceleratorState._reset_state(reset_partial_state=True)
    yield
    AcceleratorState._reset_state(reset_partial_state=True)


@pytest.fixture(params=["bf16", "fp32"])
def device(request: pytest.FixtureRequest) -> Device:
    """The GPU, in either precision."""
    return open_device(0, request.param)


def _begun(family: str, kind: str, folder: Path, device: Device, sizes: ModelSettings = DROPOUT) -> Run[Any, Any]:
    """A run of three epochs; all runs of its kind begin in the same state."""
    torch.manual_seed(0)
    run = make_run(family, kind, folder, device.attention, device, sizes, MUON)
    run.model.to(device.torch_device)
    return replace(run, epochs=3)


def _trained(run: Run[Any, Any]) -> dict[str, Tensor]:
    train(run, lambda epoch, meter: epoch.loss)
    return {name: weight.cpu() for name, weight in gather_weights(run.model).items()}


class _Killed(Exception):  # noqa: N818 - no error
    """Raised instead of sending a signal."""


def _killed_at(run: Run[Any, Any], count: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Train until `count` batches are drawn, one of them to count operations and the last for the next update."""
    part, drawn = run.objective.part, []

    def one_more(*given: Any) -> Any:
        drawn.append(1)
        if len(drawn) > count:
            raise _Killed
        return part(*given)

    monkeypatch.setattr(run.objective, "part", one_more)
    with pytest.raises(_Killed):
        train(run, lambda epoch, meter: epoch.loss)
    assert run.checkpointer
    run.checkpointer.close()


@EACH
def test_a_resumed_run_ends_with_the_same_bytes(
    family: str, kind: str, tmp_path: Path, device: Device, monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:  # fmt: skip
    """And so does a run that is made twice; an operation without a deterministic kernel raises."""
    monkeypatch.setenv("DVC_ROOT", str(tmp_path))
    monkeypatch.setenv("RETRACE_SAVE_SECONDS", "0")
    whole = _trained(_begun(family, kind, tmp_path, device))

    def resumable() -> Run[Any, Any]:
        run = _begun(family, kind, tmp_path, device)
        return replace(run, checkpointer=Checkpointer("gpu", "", device))

    begun = resumable()
    _killed_at(begun, begun.updates // 2 + 2, monkeypatch)
    resumed = resumable()
    ended = _trained(resumed)
    assert [name for name in whole if not torch.equal(whole[name], ended[name])] == []
    assert "resuming after step" in capsys.readouterr().out
    assert resumed.checkpointer
    resumed.checkpointer.close()


@EACH
def test_the_host_waits_once_per_update(family: str, kind: str, tmp_path: Path) -> None:
    run = _begun(family, kind, tmp_path, open_device(0, "bf16"))
    training = Training(run, run.model)
    training.at.epoch = 0
    updates = training.rest_of_epoch()
    next(updates)
    with warnings.catch_warnings(record=True) as found:
        warnings.filterwarnings("always", "called a synchronizing CUDA operation")
        torch.cuda.set_sync_debug_mode("warn")
        try:
            next(updates)
        finally:
            torch.cuda.set_sync_debug_mode("default")
    found = [each for each in found if "called a synchronizing" in str(each.message)]
    assert len(found) == 1, [f"{each.filename}:{each.lineno}: {each.message}" for each in found]


@EACH
def test_losses_are_those_of_a_cpu(family: str, kind: str, tmp_path: Path) -> None:
    """In float32 and without dropout, whose masks differ."""
    gpu, unmoved = open_device(0, "fp32"), SimpleNamespace(prepare_model=lambda model: model)
    cpu = replace(gpu, torch_device=torch.device("cpu"), accelerator=cast(Any, unmoved))
    here, there = (_begun(family, kind, tmp_path, of, MODEL) for of in (gpu, cpu))
    for run in (here, there):
        train(run, lambda epoch, meter: epoch.loss)
    assert here.journal[1:] == pytest.approx(there.journal[1:], rel=1e-3)


@pytest.mark.parametrize("family", FAMILIES)
def test_padding_changes_no_score(family: str) -> None:
    sizes = MODEL.model_copy(update={"max_positions": 256})
    config = make_config(family, sizes, Vocabulary(120, *range(5)))
    model: Any = make_model("classifier", config, 0, "sdpa").eval()
    model.to("cuda")
    drawn = torch.Generator().manual_seed(0)
    lengths = (7, 64, 130, 200)
    rows = [torch.randint(5, 120, (length,), generator=drawn) for length in lengths]
    ids = nn.utils.rnn.pad_sequence(rows, batch_first=True).cuda()
    mask = (torch.arange(max(lengths)) < torch.tensor(lengths)[:, None]).long().cuda()
    with torch.no_grad():
        together = model(input_ids=ids, attention_mask=mask).logits
        alone = torch.cat([model(input_ids=row[None].cuda()).logits for row in rows])
    torch.testing.assert_close(together, alone, rtol=1e-5, atol=1e-5)


BERT = ModelSettings(hidden_size=256, layers=6, heads=4, intermediate_size=1024, max_positions=512, dropout=0.1)
BLOCK, BLOCKS = 512, 32


@pytest.mark.parametrize("family", ["bert", "modernbert", "llama"])
def test_memory_is_what_was_planned(family: str) -> None:
    """Measured on tensors, which hold most of it; the allocator rounds up, and cuBLAS has a workspace."""
    vocabulary = Vocabulary(30_522, *range(5))
    config, device = make_config(family, BERT, vocabulary), open_device(0, "bf16")
    masking = None if family == "llama" else Masking(0.15)
    objective: Objective = random_blocks(vocabulary, BLOCK, BLOCKS, masking, 1)
    model = LanguageModel(make_model("language_model", config, 0, device.attention)).to(device.torch_device)
    before = torch.cuda.memory_allocated()
    torch.cuda.reset_peak_memory_stats()
    train(Run("memory", model, objective, device, MUON, 0.001, 1), lambda epoch, meter: None)
    asked = BLOCKS * (BLOCK if masking is None else int(0.15 * BLOCK))
    planned = update_needs("language_model", config, Load(BLOCKS, BLOCK, asked, True, "sdpa"), MUON)
    held = torch.cuda.max_memory_allocated() - before + planned.weights
    print(f"{family}: {held / planned.peak:.3f} of the planned {planned.peak / 2**20:.0f} MiB")
    assert 0.9 * planned.peak < held < 1.1 * planned.peak


@pytest.mark.parametrize("kind", ["language model", "classifier"])
def test_compiled_training_has_the_same_losses(kind: str, tmp_path: Path) -> None:
    device = open_device(0, "fp32")
    torch._dynamo.reset()
    counters.clear()
    plain, compiled = (_begun("bert", kind, tmp_path, replace(device, compiler=by), MODEL) for by in (None, "inductor"))
    for run in (plain, compiled):
        train(run, lambda epoch, meter: epoch.loss)
    assert compiled.journal[1:] == pytest.approx(plain.journal[1:], rel=1e-3)
    assert counters["stats"]["unique_graphs"]


def test_a_leased_gpu_is_not_given_to_another_process(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where there is one GPU, the second process waits for the end of the first."""
    monkeypatch.setenv("RETRACE_SHARE_GPUS", "false")
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    program = "import torch, time; from retrace.compute.device import open_device; open_device(0); print('has', {}); {}"

    with ExitStack() as ending:

        def start(name: int, then: str) -> Any:
            command = [sys.executable, "-u", "-c", program.format(name, then)]
            pipes: Any = {"stdout": subprocess.PIPE, "stderr": subprocess.STDOUT}
            started = ending.enter_context(subprocess.Popen(command, cwd=ROOT, text=True, **pipes))
            ending.callback(started.kill)
            return started

        numbers = range(1, torch.cuda.device_count() + 1)
        owners = [start(number, "time.sleep(600)") for number in numbers]
        for number, owner in zip(numbers, owners, strict=True):
            assert owner.stdout.readline() == f"has {number}\n"
        last = start(0, "pass")
        assert "waiting" in last.stdout.readline()
        time.sleep(1)
        assert last.poll() is None
        owners[0].kill()
        assert last.stdout.readline() == "has 0\n"
