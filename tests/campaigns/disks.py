"""Disks that fill up at random moments of every stage, or are read-only: one line, no damage, and a clean rerun.

Every trial has a toy project on its own disk (tmpfs, which needs root), on which all stages before one have run. The
free space is drawn uniformly between nothing and what that stage writes. In every other trial training saves a
checkpoint after every update. The stage must end in one line with exit code 2, change no existing file and leave
nothing half-written, and once the disk is larger, end with the bytes of an undisturbed run. Each stage must do the same
once on a read-only disk.

    python -m tests.campaigns.disks [--trials 48] [--seed 1]
"""

import os
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from random import Random

from tests.campaigns.trials import Outcome, changed, digests, failure, half_written, main
from tests.toy import Project

STAGES = {  # and what each writes
    "sources.sample": ["data/text", "data/classification/sst2", "data/question_answering/squad"],
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


def mount(place: Path, options: str, *kind: str) -> None:
    """Mount a disk, or change a mounted one."""
    subprocess.run(["mount", *kind, "-o", options, *(["tmpfs"] if kind else []), place], check=True)


def copy(whole: Path, folder: Path, stage: str, saves: bool) -> Project:
    """The project without what a stage wrote."""
    shutil.copytree(whole, folder, symlinks=True, ignore=shutil.ignore_patterns(".git", ".dvc", "docs"))
    for name in STAGES[stage]:
        shutil.rmtree(folder / name) if (folder / name).is_dir() else (folder / name).unlink()
    return Project(folder, {**os.environ, "RETRACE_SAVE_SECONDS": "0" if saves else "3600"})


def trial(whole: Path, place: Path, stage: str, share: float | None, saves: bool) -> Outcome:
    """A stage on a disk that is too small by this much or, without a share, read-only, and again on a larger one."""
    project = copy(whole, place / "project", stage, saves)
    before = digests(project.folder)
    files = [path for name in STAGES[stage] for path in [whole / name, *(whole / name).rglob("*")]]
    written = sum(path.stat().st_size for path in files if path.is_file())
    room = shutil.disk_usage(place).used + int((share or 0) * written * (CHECKPOINTS if saves else 1))
    mount(place, "remount,ro" if share is None else f"remount,size={room}")
    done, wrong = project.stage(*stage.split(), code=None), []
    if done.returncode:
        lines, said = done.stderr.splitlines(), "Read-only" if share is None else "space"
        right = done.returncode == 2 and len(lines) == 1 and lines[0].startswith("error: ") and said in lines[0]
        after = digests(project.folder)
        wrong += ([] if right else failure(done)) + half_written(project.folder)
        wrong += [name for name in before if after.get(name) != before[name]]
    elif share is None:
        wrong += ["no failure"]
    mount(place, f"remount,rw,size={SIZE}")
    project.stage(*stage.split())
    wrong += changed(digests(project.folder), digests(whole))
    print(share, done.returncode, done.stderr.strip()[:300])
    return Outcome(stage.split()[0], wrong, {"fitted": done.returncode == 0})


def campaign(whole: Path, folder: Path, count: int, draw: Random) -> Iterator[Outcome]:
    """Every stage in turn: first on disks that are read-only."""
    for number in range(count):
        place, turn = folder / f"disk{number}", number // len(STAGES)
        place.mkdir()
        mount(place, f"size={SIZE}", "-t", "tmpfs")
        try:
            share = draw.random() if turn else None
            yield trial(whole, place, [*STAGES][number % len(STAGES)], share, turn % 2 == 0)
        finally:
            subprocess.run(["umount", place], check=True)


if __name__ == "__main__":
    main(campaign, __doc__, 48)
