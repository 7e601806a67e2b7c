"""`retrace spread`: the cells of the pipeline side by side.

DVC runs one stage after another, but lets go of the repository while a stage's command runs. So each cell gets a `dvc
repro` of its own in the same folder, with the same dvc.lock and cache, and its process takes a GPU for itself
(retrace/compute/lease.py).
"""

import os
import signal
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import networkx
import typer
from dvc.exceptions import DvcException
from dvc.repo import Repo
from dvc.repo.reproduce import collect_stages, get_active_graph, plan_repro
from dvc.utils.serialize import load_yaml, modify_yaml

from retrace.cli import crew
from retrace.cli.crew import Here, Slurm, log_of
from retrace.cli.remote import pull_option, sending
from retrace.cli.repro import Push, require_checkout
from retrace.compute.lease import visible_gpus
from retrace.core.errors import InputError
from retrace.core.guard import handled

DVC = (sys.executable, "-m", "dvc", "--wait-for-lock", "repro")
ASKING = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)  # to stop
PIPELINE, RECORD = Path("dvc.yaml"), Path("dvc.lock")


@dataclass(frozen=True)
class Plan:
    """The stages of dvc.yaml in the order of `dvc repro`, and which of them run side by side."""

    order: list[str]
    needed: list[str]  # by the cells, of all pipelines
    cells: list[str]  # of a matrix, and what needs none of them and is not needed by them, as perplexity


def spread(
    jobs: Annotated[
        int | None, typer.Option("--jobs", "-j", min=1, help="cells at once; default: one a GPU or core")
    ] = None,
    slurm: Annotated[
        bool, typer.Option("--slurm", help="each as a job of Slurm, of which SBATCH_ variables say more")
    ] = False,
    push: Push = False,
) -> None:
    """Do what `dvc repro` does, the cells that are out of date side by side, each on a GPU of its own.

    Their output is in .retrace/spread. A cell that fails is tried once more, from its last saved state.
    """
    require_checkout(str(PIPELINE))
    if slurm:
        place = Slurm()
    else:
        jobs = jobs or _default_jobs()
        place = Here(jobs)
    plan, recorded, received = read_plan(), list(_recorded()), list[int]()
    pull = pull_option()
    heard = [number for number in ASKING if signal.getsignal(number) != signal.SIG_IGN]  # as `nohup` has it
    try:
        with sending(push), handled(lambda number, _: received.append(number), heard):
            if plan.needed:
                _repro(place, {"needed": [*pull, "-s", *plan.needed]}, received)
            cells = out_of_date(plan.cells)
            if cells:
                at_once = min(jobs or len(cells), len(cells))
                print(f"{len(cells)} stages, {at_once} at once; their output is in {crew.LOGS}", flush=True)
                _repro(place, {name: [*pull, "-s", name] for name in cells}, received, at_once)
            _repro(place, {"rest": pull}, received)
    finally:
        put_in_order(plan.order, recorded)


def read_plan() -> Plan:
    """What DVC would run, and in which order.

    Raises InputError where DVC cannot tell.
    """
    try:
        repo = Repo()
        graph = get_active_graph(repo.index.graph)  # a stage points to what it needs
        order = plan_repro(graph, collect_stages(repo, [str(PIPELINE)]))
    except DvcException as error:
        raise InputError(str(error)) from None
    with repo:
        own = [stage for stage in order if stage.path_in_repo == str(PIPELINE)]
        matrix = [stage for stage in own if "@" in stage.addressing]
        needed = set().union(*(networkx.descendants(graph, stage) for stage in matrix))
        later = set().union(*(networkx.ancestors(graph, stage) for stage in matrix)) if matrix else set(own)
        return Plan(
            [stage.addressing for stage in own],
            [stage.addressing for stage in order if stage in needed],
            [stage.addressing for stage in own if stage not in needed | later],
        )


def out_of_date(cells: Sequence[str]) -> list[str]:
    """Those that `dvc repro` would run."""
    with Repo(_wait_for_lock=True) as repo:
        changed = repo.status(targets=list(cells)) if cells else {}
    return [name for name in cells if name in changed]


def put_in_order(order: Sequence[str], recorded: Sequence[str]) -> None:
    """Sort what dvc.lock has more than it had as `dvc repro` would have added it."""
    with Repo(_wait_for_lock=True) as repo, repo.lock:
        found = list(_recorded())
        wanted = [*recorded, *sorted(set(found).difference(recorded), key=order.index)]
        if found == wanted:
            return
        with modify_yaml(RECORD) as data:
            for name in wanted:
                data["stages"][name] = data["stages"].pop(name)


def _repro(
    place: Here | Slurm, runs: Mapping[str, Sequence[str]], received: Sequence[int], at_once: int | None = None
) -> None:
    """Run `dvc repro` with each of these arguments, by name; alone where it is not said how many at once.

    Raises typer.Exit with the exit code of one that failed.
    """
    failed = crew.run(place, {name: [*DVC, *of] for name, of in runs.items()}, at_once or 1, received, at_once is None)
    reasons = [f"  {name}: {crew.reason(name)}" for name in failed if log_of(name).is_file()]  # else it was printed
    if reasons:
        print(f"error: {len(failed)} of {len(runs)} stages failed:", *reasons, sep="\n", file=sys.stderr)
    if failed:
        raise typer.Exit(next(iter(failed.values())))


def _default_jobs() -> int:
    """As many as there are GPUs, else cores, but for stages that take several."""
    if os.environ.get("RETRACE_LAUNCH"):
        return 1
    return len(visible_gpus()) or len(os.sched_getaffinity(0))


def _recorded() -> Mapping[str, object]:
    return load_yaml(RECORD)["stages"] if RECORD.is_file() else {}
