"""Files truncated and bits flipped, with time and size unchanged where possible: is each noticed before it is used?

In a toy project that has run, it damages the outputs of every stage that a later stage reads (which that stage's guard
must notice), checkpoints (which resuming must notice), and DVC's cache (which `retrace check --cache` must notice).
Each file is truncated to 0, 1, 25, 50 and 99% and by its last byte; flips are spread evenly over the files. Then some
of each kind are given to real stages: a stage that reads the damaged file must name it, and `dvc repro` must end with
the same bytes as before.

    python -m tests.campaigns.damage [--flips 1000] [--seed 1]
"""

import os
import random
import signal
import sys
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import chdir, redirect_stdout
from io import StringIO
from pathlib import Path

from retrace.cli.dvc_files import mend_cache
from retrace.core.errors import InputError
from retrace.core.files import SUMS
from retrace.core.guard import guarded, running
from retrace.training.checkpoint import find_damage
from tests.campaigns.trials import Outcome, differing, fresh, main
from tests.toy import Project

SHARES = (0.0, 0.01, 0.25, 0.5, 0.99)
READ = (
    "data/text", "data/classification", "data/question_answering", "data/model", "models/tokenizer", "models/tokens",
    "models/pretrained", "predictions",
)  # fmt: skip
READERS = {  # a stage for each kind of file
    "models/tokens/train.npy": "pretrain",
    "models/pretrained/model.safetensors": "perplexity-eval",
    "predictions/sst2/full/1/predictions.parquet": "evaluate",
}


def flipped(content: bytes, bit: int) -> bytes:
    """The content with one bit flipped."""
    changed = bytearray(content)
    changed[bit // 8] ^= 1 << bit % 8
    return bytes(changed)


def rewrite(path: Path, content: bytes) -> None:
    """Give a file another content, and leave its times and mode as they are."""
    before = path.stat()
    path.chmod(0o644)
    path.write_bytes(content)
    path.chmod(before.st_mode)
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))


def damages(files: list[Path], flips: int, draw: random.Random) -> Iterator[tuple[Path, str, bytes]]:
    """Every truncation that changes the file, and this many flips."""
    contents = {path: path.read_bytes() for path in files}
    for path, content in contents.items():
        size = len(content)
        for shorter in sorted({*(int(share * size) for share in SHARES), max(size - 1, 0)} - {size}):
            yield path, "truncated", content[:shorter]
    filled = [path for path in files if contents[path]]
    for path in (filled[number % len(filled)] for number in range(flips)):
        yield path, "flipped", flipped(contents[path], draw.randrange(8 * len(contents[path])))


def noticed_by_guard(folder: Path) -> bool:
    """Whether a stage that reads the folder ends before it does, and says where."""
    try:
        with guarded("damage", [folder], {}):
            return False
    except InputError as error:
        return str(error).startswith(f"{folder}/") and "damaged" in str(error)


def noticed_in_cache(path: Path) -> bool:
    """Whether the damage to DVC's cache is found there; the file is set aside so that it can be restored."""
    content = path.read_bytes()
    with redirect_stdout(StringIO()):
        mend_cache()
    if path.exists():
        return False
    path.write_bytes(content)
    return True


def files_under(folder: Path) -> list[Path]:
    """All files, beginning with those that list the others' digests."""
    return sorted((path for path in folder.rglob("*") if path.is_file()), key=lambda path: (path.name != SUMS, path))


def in_process(states: Path, flips: int, draw: random.Random, most: int | None = None) -> dict[str, Counter[str]]:
    """Damage every kind of file in this folder, each `most` times; how many were noticed."""
    kinds = {name: files_under(Path(name)) for name in READ}
    kinds |= {"checkpoints": files_under(states), "cache": files_under(Path(".dvc/cache/files"))}
    found = {}
    for name, files in kinds.items():
        count = found[name] = Counter()
        every = list(damages(files, flips // len(kinds) + 1, draw))
        for path, how, damaged in every if most is None else draw.sample(every, most):
            content = path.read_bytes()
            rewrite(path, damaged)
            if name == "checkpoints":
                seen = find_damage(path.parent) is not None
            else:
                seen = noticed_in_cache(path) if name == "cache" else noticed_by_guard(Path(name))
            rewrite(path, content)
            count += Counter({how: 1, "noticed": seen})
            if not seen:
                print("not noticed:", path, how, len(damaged))
    return found


def by_stages(whole: Path, folder: Path) -> Iterator[Outcome]:
    """Damage what a real stage reads, in the workspace and in the cache, and have DVC rebuild it."""
    for name, stage in READERS.items():
        project, path = fresh(whole, folder), folder / name
        project.run("dvc", "status")  # by which DVC knows times and sizes
        objects = {file.read_bytes(): file for file in files_under(folder / ".dvc/cache/files")}
        for each in (objects[path.read_bytes()], path):
            rewrite(each, flipped(each.read_bytes(), 4001))
        said = project.run("dvc", "repro", "--force", "--single-item", stage, code=None).stderr
        project.stage("retrace.cli.main", "check", "--cache")
        project.run("dvc", "repro")
        wrong = [] if f"error: {name}: damaged" in said else [said]
        yield Outcome("by stages", wrong + differing(folder, whole))


def saved_states(project: Project) -> Path:
    """Checkpoints of a pretraining run that was asked to stop."""
    states = project.folder / ".retrace/states"
    with project.with_variables(RETRACE_SAVE_SECONDS="0").start(sys.executable, "-m", "stages.pretrain") as run:
        while len(list(states.glob("*/0*"))) < 2:
            assert run.poll() is None
            time.sleep(0.02)
        for held in running():
            os.kill(held.process, signal.SIGTERM)
        run.communicate()
    return states


def campaign(whole: Path, folder: Path, flips: int, draw: random.Random) -> Iterator[Outcome]:
    """Every kind of file, and then some with real stages."""
    with chdir(whole):
        for kind, count in in_process(saved_states(Project(whole)), flips, draw).items():
            missed = count["truncated"] + count["flipped"] - count["noticed"]
            yield Outcome(kind, [f"{missed} were not noticed"] if missed else [], count)
    yield from by_stages(whole, folder / "trial")


if __name__ == "__main__":
    main(campaign, __doc__, 1000, "flips")
