import os
import subprocess
import sys
from contextlib import contextmanager, suppress
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from accelerate import Accelerator
from accelerate.state import AcceleratorState
from torch.distributed.distributed_c10d import default_pg_timeout

from retrace.compute import device
from retrace.compute.device import TIMEOUT, Device
from retrace.compute.sharding import data_parallel
from retrace.core.errors import InputError
from retrace.training.loop import Training, train
from tests.commands import retrace
from tests.counting import make_run
from tests.tiny import one_of, tiny_device
from tests.toy import ROOT, copy_settings


def test_kernels_and_reductions_are_deterministic_before_the_process_group_is_made(monkeypatch) -> None:
    """NCCL chooses how it adds when the process group is made, which Accelerator does."""
    found: list[tuple[bool, str | None]] = []

    def accelerator(**options: Any) -> Any:
        found.append((torch.are_deterministic_algorithms_enabled(), os.environ.get("NCCL_ALGO")))
        return made(**options)

    made = device.Accelerator
    monkeypatch.setattr(device, "Accelerator", accelerator)
    monkeypatch.delenv("NCCL_ALGO", raising=False)
    torch.use_deterministic_algorithms(False)
    torch.backends.cuda.enable_cudnn_sdp(True)
    device.open_device(0, "fp32")
    assert found == [(True, "^NVLS,NVLSTree")]
    assert torch.are_deterministic_algorithms_enabled()
    assert not torch.backends.cuda.cudnn_sdp_enabled()


def test_waiting_threads_spin_only_briefly() -> None:
    """The number of threads would change a run's last digits; how they wait does not."""
    said = subprocess.run(
        [sys.executable, "-c", "import stages, torch"], cwd=ROOT, env={"OMP_DISPLAY_ENV": "verbose"},
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    assert "GOMP_SPINCOUNT = '10000'" in said.stderr


def test_float32_is_not_tf32_where_a_container_asks_for_it() -> None:
    torch.set_float32_matmul_precision("high")  # as TORCH_ALLOW_TF32_CUBLAS_OVERRIDE=1 does
    assert torch.backends.cuda.matmul.fp32_precision == "tf32"
    device.open_device(0, "fp32")
    assert torch.backends.cuda.matmul.fp32_precision == "ieee"


def test_a_gpu_is_leased_before_cuda_starts_unless_a_cpu_is_asked_for(monkeypatch, here: Path) -> None:
    order: list[str] = []
    monkeypatch.setattr(device, "lease_gpus", lambda: order.append("lease"))
    monkeypatch.setattr(device, "Accelerator", lambda **options: order.append("start") or made(**options))
    made = Accelerator
    for cuda, use_cpu, expected in (
        ("12.8", "1", ["start"]),
        (None, "0", ["start"]),
        ("12.8", "0", ["lease", "start"]),
    ):
        order.clear()
        monkeypatch.setattr(torch.version, "cuda", cuda)
        monkeypatch.setenv("ACCELERATE_USE_CPU", use_cpu)
        device.open_device(0, "fp32")
        assert order == expected
    order.clear()
    copy_settings(here)
    assert retrace("memory", "--batch", 1, "--length", 8).code == 0  # does not wait for a GPU
    assert order == ["start"]


def test_tests_run_on_a_cpu_even_where_there_is_a_gpu() -> None:
    """They compare with what a CPU computes, or leave their model on it; tests/test_gpu.py is for the GPU."""
    AcceleratorState._reset_state(reset_partial_state=True)
    state: Any = tiny_device().accelerator.state
    assert state._cpu


@pytest.mark.parametrize(("variable", "value"), [("MIXED_PRECISION", "bf16"), ("DYNAMO_BACKEND", "eager")])
def test_accelerates_own_settings_change_neither_precision_nor_model(monkeypatch, variable: str, value: str) -> None:
    """Its launcher passes them on from a configuration file that people keep for other programs."""
    monkeypatch.setenv(f"ACCELERATE_{variable}", value)
    AcceleratorState._reset_state()  # which is otherwise made once for all tests
    model = torch.nn.Linear(3, 2)
    given, forward = torch.randn(4, 3), model.forward
    try:
        prepared = data_parallel(model, tiny_device())
        assert prepared is model
        assert prepared.forward == forward
        assert torch.equal(prepared(given), torch.nn.functional.linear(given, model.weight, model.bias))
    finally:
        AcceleratorState._reset_state()


@pytest.mark.parametrize(
    ("variable", "value", "allowed"),
    [
        ("RETRACE_COMPILE", "yes", "true or false"),
        ("RETRACE_MICRO_BATCH", "0", "a whole number above 0"),
        ("RETRACE_THREADS", "²", "a whole number above 0"),  # a digit, but no number
    ],
)
def test_a_wrong_variable_is_an_input_error(monkeypatch, variable: str, value: str, allowed: str) -> None:
    monkeypatch.setenv(variable, value)
    with pytest.raises(InputError, match=f"^{variable}: '{value}' is not allowed; expected {allowed}$"):
        tiny_device()


def test_processes_have_different_dropout_masks_and_the_first_those_of_a_single_process() -> None:
    def mask(rank: int | None) -> Any:
        torch.manual_seed(1)
        if rank is not None:
            one_of(3, rank).seed_dropout()
        return tuple(torch.nn.functional.dropout(torch.ones(64)).tolist())

    assert mask(0) == mask(None)
    assert len({mask(rank) for rank in range(3)}) == 3
    assert mask(2) == mask(2)


def test_an_update_of_several_processes_on_cpus_is_waited_for_briefly(monkeypatch: pytest.MonkeyPatch) -> None:
    """What follows has the default timeout again; so have compiled models, which start slowly, and single processes."""
    found: list[Any] = []
    world = SimpleNamespace(set_timeout=found.append)
    monkeypatch.setattr(torch.distributed, "group", SimpleNamespace(WORLD=world))
    with suppress(KeyError), one_of(2, 0).short_timeout():
        assert found == [TIMEOUT]
        raise KeyError
    assert found == [TIMEOUT, default_pg_timeout]
    for other in (one_of(1, 0), replace(one_of(2, 0), compiler="eager")):
        with other.short_timeout():
            pass
    assert len(found) == 2


def test_updates_are_waited_for_briefly_and_evaluations_are_not(tmp_path: Path, monkeypatch) -> None:
    is_brief, found = [False], {"update": set[bool](), "evaluation": set[bool]()}
    update = Training._update

    @contextmanager
    def short_timeout(_: Device):
        is_brief[0] = True
        yield
        is_brief[0] = False

    monkeypatch.setattr(Device, "short_timeout", short_timeout)
    monkeypatch.setattr(Training, "_update", lambda *of: found["update"].add(is_brief[0]) or update(*of))
    run = make_run("bert", "classifier", tmp_path, "lean", tiny_device())
    train(run, lambda epoch, meter: found["evaluation"].add(is_brief[0]))
    assert found == {"update": {True}, "evaluation": {False}}


def test_a_single_process_has_lost_nobody() -> None:
    """Its error is passed on unchanged, even if something timed out."""
    with pytest.raises(RuntimeError, match=r"^the file system timed out$"), one_of(1, 0).together():
        raise RuntimeError("the file system timed out")
    with pytest.raises(device.Interrupted, match=r"^process 1 lost contact with another"), one_of(2, 1).together():
        raise RuntimeError("Timed out waiting 45000ms")


def test_freed_memory_is_kept_with_an_older_glibc_too(monkeypatch: pytest.MonkeyPatch) -> None:
    """It refuses a threshold above 32 MiB. With the other setting alone, every 128 KiB would be mapped anew."""
    taken = {}

    def mallopt(name: int, value: int) -> int:
        if name != device._MMAP_THRESHOLD or value <= 2**25:
            taken[name] = value
        return int(taken.get(name) == value)

    monkeypatch.setattr(device.ctypes, "CDLL", lambda name: SimpleNamespace(mallopt=mallopt))
    device._keep_freed_memory()
    assert taken == {device._MMAP_THRESHOLD: 2**25, device._TRIM_THRESHOLD: 2**31 - 1}
