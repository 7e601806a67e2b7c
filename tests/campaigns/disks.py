"""Disks that fill up at random moments of every stage, or are read-only: one line, nothing damaged, and a rerun.

Every trial has a toy project on a disk of its own (tmpfs, which takes root's rights), on which all stages before one
have run, with as much space as is drawn evenly from nothing to what that stage writes. In every other trial training
saves a checkpoint after every update. The stage must end in one line with exit code 2, leave what there was as it was
and nothing half-written, and once the disk is larger end in the bytes of an undisturbed run. So must each stage once on
a disk that is read-only.

    python -m tests.campaigns.disks [--trials 48] [--seed 1]
"""

import os
import random
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.campaigns.trials import Result, digests, failure, finished_toy, half_written, options
from tests.toy import Project

STAGES = {  # and what each writes
    "sources.sample": ["data/sample"],
    "tokenize": ["models/tokenizer", "models/tokens"],
    "pretrain": ["models/pretrained", "reports/curves/pretrain"],
    "perplexity_eval": ["reports/perplexity.json", "reports/perplexity-details.json"],
    "finetune_sst2 --method full --seed 1": ["models/sst2", "predictions/sst2"],
    "finetune_squad --method full --seed 1": ["models/squad", "predictions/squad"],
    "evaluate": ["reports/metrics.json", "reports/scores.json", "reports/curves/tasks", "reports/baselines"],
    "report": ["reports/report.md", "reports/report.html", "reports/figures"],
}
CHECKPOINTS = 8  # models that three checkpoints take, about
SIZE = 2**29  # bytes of a disk with room for all


@contextmanager
def disk(folder: Path) -> Iterator[Path]:
    """A disk of its own."""
    folder.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={SIZE}", "tmpfs", folder], check=True)
    try:
        yield folder
    finally:
        subprocess.run(["umount", folder], check=True)


def resize(folder: Path, free: int) -> None:
    """Leave so many bytes free."""
    usage = shutil.disk_usage(folder)
    subprocess.run(["mount", "-o", f"remount,size={usage.used + free}", folder], check=True)


def copy(whole: Path, folder: Path, stage: str, saves: bool) -> Project:
    """The project without what a stage wrote."""
    shutil.copytree(whole, folder, symlinks=True, ignore=shutil.ignore_patterns(".git", ".dvc", "docs"))
    for name in STAGES[stage]:
        shutil.rmtree(folder / name) if (folder / name).is_dir() else (folder / name).unlink()
    return Project(folder, {**os.environ, "RETRACE_SAVE_SECONDS": "0" if saves else "3600"})


def trial(whole: Path, folder: Path, stage: str, share: float | None, saves: bool) -> list[str]:
    """What is not as it should be after a stage ran on a disk too small by so much, and again on a larger one.

    Without a share the disk is read-only instead.
    """
    with disk(folder) as place:
        project = copy(whole, place / "project", stage, saves)
        before = digests(project.folder)
        files = [path for name in STAGES[stage] for path in [whole / name, *(whole / name).rglob("*")]]
        written = sum(path.stat().st_size for path in files if path.is_file())
        if share is None:
            subprocess.run(["mount", "-o", "remount,ro", place], check=True)
        else:
            resize(place, int(share * written * (CHECKPOINTS if saves else 1)))
        done = project.stage(*stage.split(), code=None)
        wrong = []
        if done.returncode:
            lines, said = done.stderr.splitlines(), "Read-only" if share is None else "space"
            right = done.returncode == 2 and len(lines) == 1 and lines[0].startswith("error: ") and said in lines[0]
            wrong += [] if right else failure(done)
            wrong += half_written(project.folder)
            after = digests(project.folder)
            wrong += [name for name in before if after.get(name) != before[name]]
        subprocess.run(["mount", "-o", f"remount,rw,size={SIZE}", place], check=True)
        project.stage(*stage.split())
        found, should = digests(project.folder), digests(whole)
        wrong += [name for name in found if found[name] != should.get(name)]
        print(stage, share, done.returncode, done.stderr.strip()[:300], wrong, flush=True)
        return [*wrong, *([] if done.returncode else ["no failure"])]


def main() -> None:
    trials, seed = options(__doc__, "trials", 48)
    draw, result = random.Random(seed), Result("disks", seed)
    with finished_toy() as (whole, folder):
        for number in range(trials):
            stage, turn = [*STAGES][number % len(STAGES)], number // len(STAGES)
            share = draw.random() if turn else None
            wrong = trial(whole, folder / f"disk{number}", stage, share, turn % 2 == 0)
            fitted = wrong == ["no failure"] and share is not None
            result.count(stage.split()[0], runs=1, fitted=fitted, right=not wrong or fitted)
    result.end()


if __name__ == "__main__":
    main()
