"""Two processes that share a model's weights against one that holds all of them."""

import json
import math
import os
import subprocess
from pathlib import Path
from typing import Any, Literal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests import warm
from tests.sharded import CASES, held, run, stepped
from tests.tiny import one_of, tiny_device
from tests.toy import ROOT

TORCHRUN = [*warm.COMMAND, "-m", "torch.distributed.run", "--standalone", "--no-python", "--nproc_per_node", "2"]


@given(st.integers(0, 30), st.integers(1, 7), st.none() | st.integers(1, 3))
def test_every_process_gets_as_many_batches_and_each_counts_once(count: int, processes: int, most: int | None) -> None:
    """Without gradients, batches of seven are parted where that is more than twice what a pass in training takes."""
    batches = [range(7 * number, 7 * number + 7) for number in range(count)]

    dealt = [list(one_of(processes, rank, most).share_batches(batches)) for rank in range(processes)]
    assert len({len(mine) for mine in dealt}) == 1
    assert sorted(row for mine in dealt for rows, counts in mine if counts for row in rows) == list(range(7 * count))
    assert all(len(rows) <= 2 * (most or 7) for mine in dealt for rows, _ in mine)
    whole = [[rows for rows, counts in mine if counts] for mine in dealt]
    assert most or whole == [batches[rank::processes] for rank in range(processes)]


@given(st.integers(1, 40), st.integers(1, 7), st.none() | st.integers(1, 9))
def test_every_process_gets_the_same_number_of_parts_of_a_batch(count: int, processes: int, most: int | None) -> None:
    shares = [one_of(processes, rank, most).share(count) for rank in range(processes)]
    dealt = [[(list(range(count))[rows], counts) for rows, counts in share] for share in shares]
    assert len({len(mine) for mine in dealt}) == 1
    assert len(dealt[0]) == (1 if most is None else math.ceil(math.ceil(count / processes) / most))
    assert sorted(row for mine in dealt for rows, counts in mine if counts for row in rows) == list(range(count))
    assert all(rows == [0] for mine in dealt for rows, counts in mine if not counts)
    assert all(len(rows) <= (most or count) for mine in dealt for rows, _ in mine)


def _found(folder: Path, **variables: str) -> dict[str, Any]:
    """What two processes with these variables wrote down."""
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "ACCELERATE_USE_CPU": "1", **variables}
    command = [*TORCHRUN, *warm.COMMAND, "-m", "tests.sharded", str(folder / "found.json")]
    subprocess.run(command, env=environment, cwd=ROOT, timeout=280, check=True)
    return json.loads((folder / "found.json").read_text())


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """What two processes that share the weights wrote down."""
    return _found(tmp_path_factory.mktemp("sharded"), ACCELERATE_USE_FSDP="true")


@pytest.mark.slow
@pytest.mark.parametrize("case", CASES)
def test_losses_and_weights_are_those_of_one_process(shared: dict[str, Any], case: str) -> None:
    one, two = run(case, tiny_device()), shared["runs"][case]
    assert two["journal"] == [pytest.approx(found, rel=1e-5) for found in one["journal"]]
    assert two["weights"].keys() == one["weights"].keys()
    for name, norm in one["weights"].items():  # softmax ignores the keys' bias: its gradient is noise
        assert name.endswith(".key.bias") or two["weights"][name] == pytest.approx(norm, rel=1e-3, abs=1e-5)
    assert "pairs" in case or two["flops"] == one["flops"]  # padded pairs vary, and only one batch is counted


@pytest.mark.slow
def test_data_parallel_processes_learn_what_one_does(tmp_path: Path) -> None:
    found = _found(tmp_path, RETRACE_MICRO_BATCH="3")
    assert not found["sharded"]
    assert found["stepped"] == stepped()  # each process orthogonalizes half of the matrices
    for case in CASES:
        expected = [pytest.approx(epoch, rel=1e-5) for epoch in run(case, tiny_device())["journal"]]
        assert found["runs"][case]["journal"] == expected
    weights, storages = found["gradient storages"]
    assert weights > storages == 1, "gradients are views of what is averaged, not copies"


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["muon", "adamw"])
def test_each_process_holds_half(shared: dict[str, Any], kind: Literal["muon", "adamw"]) -> None:
    whole = held(kind, tiny_device())
    assert all(size == pytest.approx(whole / 2, rel=0.002) for size in shared["held"][kind])


@pytest.mark.slow
def test_weights_are_gathered_sharded_and_loaded_exactly(shared: dict[str, Any]) -> None:
    assert shared["sharded"]
    assert shared["same"] == [1.0, 1.0]
