"""`retrace spread`: run the cells of the pipeline, which are its fine-tuning runs, side by side.

DVC runs one stage after another, but releases its lock while a stage's command runs. So each cell gets its own `dvc
repro` in the same folder, with the same dvc.lock and cache, and its process leases a GPU (retrace/compute/lease.py).
"""

import os
import signal
import sys
from collections.abc import Iterable, Mapping, Sequence
from contextlib import nullcontext
from pathlib import Path
from typing import Annotated, Any

import networkx
import typer
from dvc.exceptions import DvcException
from dvc.repo import Repo
from dvc.repo.reproduce import collect_stages, get_active_graph, plan_repro
from dvc.utils.serialize import load_yaml, modify_yaml

from retrace.cli import workers
from retrace.cli.check import require_ready
from retrace.cli.remote import Sender, pull_option
from retrace.cli.repro import Push, prefer_this_python
from retrace.cli.workers import Here, Slurm
from retrace.compute.lease import visible_gpus
from retrace.core.environment import cores
from retrace.core.errors import InputError, as_shell, one_line
from retrace.core.guard import handled, lock
from retrace.core.paths import require_checkout

DVC = (sys.executable, "-m", "dvc", "--wait-for-lock", "repro")
ASKING = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)  # signals that ask to stop
Jobs = typer.Option(
    "--jobs",
    "-j",
    min=1,
    help="fine-tuning runs at once; default: one per GPU or core, one with RETRACE_LAUNCH, all with --slurm",
)
PIPELINE, RECORD = Path("dvc.yaml"), Path("dvc.lock")


def spread(
    jobs: Annotated[int | None, Jobs] = None,
    slurm: Annotated[bool, typer.Option("--slurm", help="as Slurm jobs; SBATCH_ variables set resources")] = False,
    push: Push = False,
) -> None:
    """Check the settings, then do what `dvc repro` does, but with fine-tuning runs side by side, each on its own GPU.

    Their output is in .retrace/spread. A run that fails is retried once, from its last saved state.
    """
    require_checkout()
    prefer_this_python()
    require_ready()
    at_once = jobs or (sys.maxsize if slurm else _default_jobs())  # Slurm's queue takes all
    place = Slurm() if slurm else Here(at_once)
    order, needed, cells = read_plan()
    recorded, pull = list(_recorded()), pull_option()
    received: list[int] = []  # signals
    heard = [number for number in ASKING if signal.getsignal(number) != signal.SIG_IGN]  # `nohup` ignores SIGHUP
    try:
        with (
            Sender() if push else nullcontext(),
            handled(lambda number, _: received.append(number), heard),
            lock("spread"),  # `retrace stop` finds this process by it; else stopped cells would be started again
        ):
            if needed:
                _repro(place, {"needed": [*pull, "-s", *needed]}, received)
            cells = out_of_date(cells)
            if cells:
                at_once = min(at_once, len(cells))
                print(f"stages to run: {len(cells)}, {at_once} at once; output in {workers.LOGS}", flush=True)
                _repro(place, {name: [*pull, "-s", name] for name in cells}, received, at_once)
            _repro(place, {"rest": pull}, received)
    finally:
        put_in_order(order, recorded)


def read_plan() -> tuple[list[str], list[str], list[str]]:
    """The stages of dvc.yaml in the order of `dvc repro`; those of any dvc.yaml that cells depend on; and the cells.

    Cells are the stages of a matrix, and stages that neither depend on these nor are their dependencies. Raises
    InputError if DVC cannot read the pipeline.
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
        cells = [stage for stage in own if stage not in needed | later]
        return _names(own), _names(stage for stage in order if stage in needed), _names(cells)


def _names(stages: Iterable[Any]) -> list[str]:
    return [stage.addressing for stage in stages]


def out_of_date(cells: Sequence[str]) -> list[str]:
    """Those cells that `dvc repro` would run; raises InputError if another one runs any of them."""
    try:
        with Repo(_wait_for_lock=True) as repo:
            changed = repo.status(targets=list(cells)) if cells else {}
    except DvcException as error:
        raise InputError(one_line(error)) from None
    return [name for name in cells if name in changed]


def put_in_order(order: Sequence[str], recorded: Sequence[str]) -> None:
    """Sort the stages that were added to dvc.lock into the order in which `dvc repro` would have added them."""
    with Repo(_wait_for_lock=True) as repo, repo.lock:
        found = list(_recorded())
        known = [*order, *(name for name in found if name not in order)]  # another process may add stages too
        added = sorted(set(found).difference(recorded), key=known.index)
        wanted = [*(name for name in recorded if name in found), *added]
        if found == wanted:
            return
        with modify_yaml(RECORD) as data:
            for name in wanted:
                data["stages"][name] = data["stages"].pop(name)


def _repro(
    place: Here | Slurm, runs: Mapping[str, Sequence[str]], received: Sequence[int], at_once: int | None = None
) -> None:
    """Run `dvc repro` with each of these lists of arguments, by name; without `at_once`, a single run that prints here.

    Raises typer.Exit with the exit code of the first that failed.
    """
    failed = workers.run(place, {name: [*DVC, *arguments] for name, arguments in runs.items()}, received, at_once)
    if failed and (at_once or isinstance(place, Slurm)):  # else its output was shown
        reasons = [f"  {name}: {workers.why_failed(name)}" for name in failed]
        print(f"error: {len(failed)} of {len(runs)} stages failed:", *reasons, sep="\n", file=sys.stderr)
    if failed:
        raise typer.Exit(as_shell(next(iter(failed.values()))))


def _default_jobs() -> int:
    """One per GPU, else one per core; one in all if each stage starts several processes."""
    return 1 if os.environ.get("RETRACE_LAUNCH") else len(visible_gpus()) or cores()


def _recorded() -> Mapping[str, object]:
    """The stages in dvc.lock; a DVC that was killed may have written the lines above them only."""
    return load_yaml(RECORD).get("stages", {}) if RECORD.is_file() else {}
