"""A pipeline killed at random moments and run again: does it end with the bytes of an undisturbed run?

Every trial takes a toy project in which all stages have run, removes one stage's outputs, its entry in dvc.lock and
DVC's run cache, starts `dvc repro`, and kills (SIGKILL) the stage, DVC, all at once or, for a stage in two processes,
the launcher or one of the two, at a moment drawn uniformly over the length of that run. Then a plain `dvc repro` runs
to its end; if DVC was killed while it wrote its lock, `retrace check` runs first, as in `make repro`. Training saves
its state every quarter of a second.

    python -m tests.campaigns.kills [--kills 100] [--seed 1]
"""

import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from random import Random

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


class Trials:
    """A project that has run, and a copy of it for each trial."""

    def __init__(self, whole: Path, folder: Path) -> None:
        self._whole, self._folder = whole, folder
        self._seconds: dict[tuple[str, bool, bool], float] = {}
        self._shared: dict[str, Mapping[str, str]] = {}  # digests of what two processes write

    def kill(self, trial: Trial) -> trials.Outcome:
        """Do one trial."""
        shared, is_cold = trial.victim in ("launcher", "worker"), trial.victim not in ("stage", "all")
        kind = trial.stage, shared, is_cold
        # In two processes up to the stage, as the bytes differ from there on.
        repro = ("dvc", "repro", *([trial.stage] if shared else []))
        if shared and trial.stage not in self._shared:
            project, began = self._without(*kind), time.monotonic()
            project.run(*repro, code=None)
            self._seconds[kind] = time.monotonic() - began
            self._shared[trial.stage] = trials.digests(project.folder)
        project, moment = self._without(*kind), trial.moment * self._seconds.get(kind, GUESSED)
        is_killed, wrong = trials.disturb(project, trial.victim, moment, *repro)
        resumed, began = any(project.folder.glob(".retrace/states/*/0*")), time.monotonic()
        done, mended = trials.run_mended(project, *repro)
        if not mended and not resumed:
            self._seconds[kind] = time.monotonic() - began
        right = self._shared[trial.stage] if shared else trials.digests(self._whole)
        wrong += trials.failure(done) + trials.half_written(project.folder)
        wrong += trials.changed(trials.digests(project.folder), right)
        counts = {"killed": is_killed, "resumed": resumed, "mended": bool(mended)}
        return trials.Outcome(f"{trial.stage}, {trial.victim}", wrong, counts)

    def _without(self, stage: str, shared: bool, is_cold: bool) -> Project:
        project = trials.without(self._whole, self._folder, stage)
        if shared:
            project = project.with_variables(RETRACE_LAUNCH="two")
        return trials.cold(project) if is_cold else project


def campaign(whole: Path, folder: Path, count: int, draw: Random) -> Iterator[trials.Outcome]:
    """Trials of every stage in turn, their victims in turn too."""
    copies = Trials(whole, folder / "trial")
    cases = [(stage, victim) for victim in ("stage", "dvc", "all") for stage in trials.STAGES]
    cases += [(stage, victim) for victim in ("launcher", "worker") for stage in SHARED]
    draw.shuffle(cases)
    for number in range(count):
        yield copies.kill(Trial(*cases[number % len(cases)], draw.random()))


if __name__ == "__main__":
    trials.main(campaign, __doc__, 100, "kills")
