"""Two at once in one checkout, and a queue of two workers: one works, the other waits or says who does; same bytes.

Every trial takes a stage's outputs away, starts `dvc repro`, and a moment later a second one, or the stage by hand. At
least one of them must succeed, and what fails must say in its last line why. A plain `dvc repro` then ends with the
bytes of a run that nothing disturbed. Last, two experiments of DVC's queue make the same fine-tuning run in two
workers, which share the folder of checkpoints; both must record the outputs of a plain run with that setting.

    python -m tests.campaigns.twice [--trials 12] [--seed 1]
"""

import re
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from random import Random

from ruamel.yaml import YAML

from tests.campaigns import trials

RUN = trials.FINE_TUNING[0]
HAND = {
    "tokenize": "tokenize",
    "pretrain": "pretrain",
    RUN: "finetune_sst2 --method full --seed 1",
    "evaluate": "evaluate",
}
HELD = re.compile(r"is busy, it is being blocked by|Unable to acquire lock|is already running here as process \d+")
LONGEST = 5.0  # seconds between the two
EPOCHS = 20  # of what is queued, for the two to meet


def trial(whole: Path, folder: Path, stage: str, by_hand: bool, pause: float) -> tuple[list[int], list[str]]:
    """Exit codes of the two, and what is wrong."""
    project = trials.without(whole, folder, stage)
    command = [sys.executable, "-m", *f"stages.{HAND[stage]}".split()] if by_hand else ["dvc", "repro"]
    with project.start("dvc", "repro") as first:
        time.sleep(pause)
        with project.start(*command) as second:
            said = [each.communicate()[1] for each in (first, second)]
    codes = [first.returncode, second.returncode]
    wrong = [] if 0 in codes else ["none worked"]
    wrong += [text[-1500:] for code, text in zip(codes, said, strict=True) if code and not HELD.search(text)]
    project.run("dvc", "repro")
    return codes, wrong + trials.differing(folder, whole) + trials.half_written(folder)


def outputs(lock: str) -> list[dict[str, object]]:
    """What a dvc.lock says that the fine-tuning run made, but for the record of its times."""
    outs = YAML(typ="safe").load(lock)["stages"][RUN]["outs"]
    return [out for out in outs if not out["path"].startswith("reports/")]


def queue(whole: Path, folder: Path) -> tuple[int, list[str]]:
    """How many places for checkpoints there were when two workers made the same run, and what is wrong after it."""
    project = trials.fresh(whole, folder)
    for name, other in (("one", "perplexity.seed=1"), ("two", "perplexity.seed=2")):  # which this stage does not read
        settings = ("-S", f"sst2.epochs={EPOCHS}", "-S", other)
        project.run("dvc", "exp", "run", "--queue", "-n", name, *settings, RUN)
    places, ended = set[str](), False
    with project.start("dvc", "queue", "start", "-j", "2") as workers:  # who share its output, and so end with it
        while not ended:
            places |= {path.name for path in folder.glob(".retrace/states/*.lock")}
            with suppress(subprocess.TimeoutExpired):
                workers.communicate(timeout=0.02)
                ended = True
    status = project.run("dvc", "queue", "status").stdout
    refs = project.run(
        "git", "for-each-ref", "--format=%(refname)", "refs/exps/**/one", "refs/exps/**/two"
    ).stdout.split()
    found = {ref.rpartition("/")[2]: outputs(project.run("git", "show", f"{ref}:dvc.lock").stdout) for ref in refs}
    shutil.rmtree(folder / ".dvc/cache/runs")
    project.set("sst2.epochs", EPOCHS)
    project.run("dvc", "repro", RUN)
    right = outputs((folder / "dvc.lock").read_text())
    print(status, places, flush=True)
    wrong = [f"{name}: {found.get(name, 'no result')}" for name in ("one", "two") if found.get(name) != right]
    return len(places), wrong


def campaign(whole: Path, folder: Path, count: int, draw: Random) -> Iterator[trials.Outcome]:
    """Two repro and a stage by hand in turn, and last the queue."""
    for number in range(count):
        by_hand = number % 2 == 1
        stage = draw.choice([*HAND] if by_hand else trials.STAGES)
        codes, wrong = trial(whole, folder / "trial", stage, by_hand, draw.uniform(0, LONGEST))
        yield trials.Outcome("by hand" if by_hand else "two repro", wrong, {"both": codes == [0, 0]})
    places, wrong = queue(whole, folder / "queue")
    yield trials.Outcome("queue", wrong, {"places": places})


if __name__ == "__main__":
    trials.main(campaign, __doc__, 12)
