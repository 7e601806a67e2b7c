"""How many run at once, and what is said of a job that did not start."""

import os
from pathlib import Path
from unittest.mock import Mock

import pytest
import typer

from retrace.cli import spread, workers
from retrace.cli.spread import _default_jobs, _repro
from retrace.cli.workers import Here, Queued, Slurm, log_of, why_failed
from retrace.core.environment import cores
from retrace.core.errors import InputError
from retrace.core.files import write_json, write_text
from tests.commands import pretend_gpus, write_program

CORES = cores()


@pytest.mark.parametrize(("gpus", "launch", "expected"), [(3, "", 3), (3, "gpus", 1), (0, "", CORES), (0, "fsdp", 1)])
def test_as_many_run_as_gpus_or_else_cores(tmp_path: Path, monkeypatch, gpus: int, launch: str, expected: int) -> None:
    monkeypatch.setenv("PATH", pretend_gpus(tmp_path, gpus)["PATH"])
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    monkeypatch.setenv("RETRACE_LAUNCH", launch)
    assert _default_jobs() == expected


def test_cells_share_the_cores_and_one_alone_has_them_all(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(workers, "cores", lambda: 8)
    monkeypatch.delenv("RETRACE_THREADS")
    found = [Here(jobs).environment.get("RETRACE_THREADS") for jobs in (1, 3, 8, 99)]
    assert found == [None, "2", "1", "1"]
    monkeypatch.setenv("RETRACE_THREADS", "7")
    assert Here(3).environment["RETRACE_THREADS"] == "7"


@pytest.mark.usefixtures("here")
@pytest.mark.parametrize("at_once", [None, 1])
def test_a_job_that_slurm_could_not_start_is_named(capsys: pytest.CaptureFixture[str], at_once: int | None) -> None:
    place = Mock(spec=Slurm, verb="queued")
    place.start.side_effect = lambda commands, alone: [Queued(Mock()) for _ in commands]  # with an exception
    with pytest.raises(typer.Exit):
        _repro(place, {"needed": []}, [], at_once)
    said = "error: 1 of 1 stages failed:\n  needed: the job did not start (.retrace/spread/jobs)\n"
    assert capsys.readouterr().err == said


@pytest.mark.usefixtures("here")
def test_what_slurm_refuses_ends_in_its_own_words(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_program(tmp_path / "srun", "")  # by which submitit finds Slurm
    write_program(tmp_path / "sbatch", "echo sbatch: error: invalid partition specified: gpuu >&2; exit 1")
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    with pytest.raises(InputError, match=r"^--slurm: sbatch: error: invalid partition specified: gpuu$"):
        _repro(Slurm(), {"needed": []}, [])


@pytest.mark.usefixtures("here")
@pytest.mark.parametrize("at_once", [None, 1])
def test_a_killed_dvc_ends_it_with_the_exit_code_of_a_shell(monkeypatch, at_once: int | None) -> None:
    monkeypatch.setattr(spread, "DVC", ("sh", "-c", "kill -9 $$"))
    with pytest.raises(typer.Exit) as ended:
        _repro(Here(1), {"cell": []}, [], at_once)
    assert ended.value.exit_code == 137


@pytest.mark.usefixtures("here")
def test_a_dvc_lock_that_was_cut_before_its_stages_has_none() -> None:
    write_text(Path("dvc.lock"), "schema: '2.0'\n")
    assert spread._recorded() == {}


@pytest.mark.filterwarnings("ignore::DeprecationWarning")  # of what DVC uses
def test_a_cell_that_another_dvc_runs_is_one_line(here: Path) -> None:
    write_text(Path(".dvc/config"), "[core]\n    no_scm = true\n")
    write_text(Path("dvc.yaml"), "stages: {cell: {cmd: ls, outs: [made]}}\n")
    assert spread.out_of_date(["cell"]) == ["cell"]
    writer = {"pid": os.getpid(), "cmd": "dvc repro"}
    write_json(Path(".dvc/tmp/rwlock"), {"write": {str(here / "made"): writer}})
    with pytest.raises(InputError, match=r"made' is busy, it is being blocked by: \(PID \d+\): dvc repro "):
        spread.out_of_date(["cell"])


@pytest.mark.usefixtures("here")
@pytest.mark.parametrize(
    ("output", "why"),
    [("error: first\nerror: second\nstage failed\n", "second"), ("first\nsecond\n \n", "second"), ("\n", "no output")],
)
def test_why_a_run_failed_is_its_last_error_or_else_its_last_line(output: str, why: str) -> None:
    write_text(log_of("cell"), output)
    assert why_failed("cell") == f"{why} (.retrace/spread/cell.log)"


@pytest.mark.usefixtures("here")
def test_why_a_run_failed_is_said_of_its_last_try(monkeypatch, capsys: pytest.CaptureFixture[str]) -> None:
    """The first has an error message; the second is killed, as by a system without memory."""
    tries = "test -e tried && { echo gone; kill -9 $$; }; touch tried; echo error: too large; exit 2"
    monkeypatch.setattr(spread, "DVC", ("sh", "-c", tries))
    with pytest.raises(typer.Exit):
        _repro(Here(1), {"cell": []}, [], at_once=1)
    assert capsys.readouterr().err == "error: 1 of 1 stages failed:\n  cell: gone (.retrace/spread/cell.log)\n"
    assert "error: too large" in log_of("cell").read_text()
