"""A pipeline killed at random moments and run again: does it end with the bytes of a run that nothing disturbed?

Every trial takes a toy project in which all stages have run, takes one stage's outputs, its entry in dvc.lock and DVC's
run cache away, starts `dvc repro`, and kills (SIGKILL) the stage, DVC, all at once or, of a stage in two processes, the
launcher or one of the two, at a moment drawn evenly from the length of that run. Then a plain `dvc repro` runs to its
end; where DVC was killed while it wrote its lock, after `retrace check`, as in `make repro`. Training saves its state
every quarter of a second.

    python -m tests.campaigns.kills [--kills 100] [--seed 1]
"""

import random
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from tests.campaigns import trials
from tests.toy import Project

SHARED = ("pretrain", "perplexity-eval", *trials.FINE_TUNING)  # that two processes may do
GUESSED = 6.0  # seconds of a run, of a stage that was not run yet


@dataclass(frozen=True)
class Trial:
    """What is killed, and when."""

    stage: str
    victim: str
    moment: float  # as a share of the time of an undisturbed run


@dataclass
class Outcome:
    """What became of a trial; `wrong` says what should not have been."""

    is_killed: bool  # rather than over before
    resumed: bool
    mended: bool  # as `retrace doctor` says, as DVC was killed while it wrote a lock
    wrong: list[str]


class Trials:
    """A project that has run, and a copy of it for each trial."""

    def __init__(self, whole: Path, folder: Path) -> None:
        self._whole, self._folder = whole, folder
        self._seconds: dict[tuple[str, bool, bool], float] = {}
        self._shared: dict[str, Mapping[str, str]] = {}  # digests of what two processes write

    def kill(self, trial: Trial) -> Outcome:
        """Do one trial."""
        shared, is_cold = trial.victim in ("launcher", "worker"), trial.victim not in ("stage", "all")
        kind = trial.stage, shared, is_cold
        # In two processes up to the stage, as the bytes are others from there on.
        repro = ("dvc", "repro", *([trial.stage] if shared else []))
        if shared and trial.stage not in self._shared:
            project, began = self._without(*kind), time.monotonic()
            project.run(*repro, code=None)
            self._seconds[kind] = time.monotonic() - began
            self._shared[trial.stage] = trials.digests(project.folder)
        project = self._without(*kind)
        running = project.start(*repro)
        is_killed = trials.is_still_running(running, trial.moment * self._seconds.get(kind, GUESSED))
        is_killed = is_killed and (trials.kill(project.folder, trial.victim) or trials.kill(project.folder, "all"))
        wrong = [] if trials.all_ended(project.folder) else ["an orphan goes on"]
        running.communicate()
        resumed, began = any(project.folder.glob(".retrace/states/*/0*")), time.monotonic()
        done, mended = trials.run_mended(project, *repro)
        if not mended and not resumed:
            self._seconds[kind] = time.monotonic() - began
        right = self._shared[trial.stage] if shared else trials.digests(self._whole)
        wrong += trials.failure(done) + trials.half_written(project.folder)
        wrong += trials.changed(trials.digests(project.folder), right)
        return Outcome(is_killed, resumed, bool(mended), wrong)

    def _without(self, stage: str, shared: bool, is_cold: bool) -> Project:
        project = trials.without(self._whole, self._folder, stage)
        if shared:
            project = project.with_variables(RETRACE_LAUNCH="two")
        return trials.cold(project) if is_cold else project


def drawn(count: int, seed: int) -> list[Trial]:
    """Trials of every stage in turn, their victims in turn too."""
    draw = random.Random(seed)
    cases = [(stage, victim) for victim in ("stage", "dvc", "all") for stage in trials.STAGES]
    cases += [(stage, victim) for victim in ("launcher", "worker") for stage in SHARED]
    draw.shuffle(cases)
    return [Trial(*cases[number % len(cases)], draw.random()) for number in range(count)]


def main() -> None:
    count, seed = trials.options(__doc__, "kills", 100)
    result = trials.Result("kills", seed)
    with trials.finished_toy() as (whole, folder):
        copies = Trials(whole, folder / "trial")
        for number, trial in enumerate(drawn(count, seed), start=1):
            of = copies.kill(trial)
            print(number, trial, of, flush=True)
            counts = {"killed": of.is_killed, "resumed": of.resumed, "mended": of.mended, "right": not of.wrong}
            result.count(f"{trial.stage}, {trial.victim}", runs=1, **counts)
    result.end()


if __name__ == "__main__":
    main()
