"""Files truncated and bits flipped, their time and size as before where that can be: is each noticed before it is used?

Of a toy project that has run: the outputs of every stage that a later stage reads (by the guard that each stage begins
with), checkpoints (by what a run does to resume), and DVC's cache (by `retrace check --cache`). Each file is truncated
to 0, 1, 25, 50 and 99% and by its last byte; flips are spread evenly over the files. Then, by real stages, some of each
kind: a stage that reads the damaged file names it, and `dvc repro` ends in the bytes from before.

    python -m tests.campaigns.damage [--flips 1000] [--seed 1]
"""

import json
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

from retrace.cli.check import mend_cache
from retrace.core.errors import InputError
from retrace.core.files import SUMS, write_json
from retrace.core.guard import guarded, running
from retrace.training.checkpoint import find_damage
from tests.campaigns.trials import RESULTS, differing, finished_toy, fresh, options
from tests.toy import Project

SHARES = (0.0, 0.01, 0.25, 0.5, 0.99)
READ = ("data/sample", "data/model", "models/tokenizer", "models/tokens", "models/pretrained", "predictions")
READERS = {  # a stage for each kind of file
    "models/tokens/train.npy": "pretrain",
    "models/pretrained/model.safetensors": "perplexity-eval",
    "predictions/sst2/full/1/predictions.parquet": "evaluate",
}


def damage(path: Path, size: int | None = None, bit: int | None = None) -> None:
    """Truncate a file to a size, or flip a bit."""
    content = bytearray(path.read_bytes()[:size])
    if bit is not None:
        content[bit // 8] ^= 1 << bit % 8
    rewrite(path, bytes(content))


def rewrite(path: Path, content: bytes) -> None:
    """Give a file another content, and leave its times and mode as they are."""
    before = path.stat()
    path.chmod(0o644)
    path.write_bytes(content)
    path.chmod(before.st_mode)
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))


def damages(files: list[Path], flips: int, draw: random.Random) -> Iterator[tuple[Path, dict[str, int]]]:
    """Every truncation that leaves another file, and so many flips."""
    for path in files:
        size = path.stat().st_size
        for shorter in sorted({*(int(share * size) for share in SHARES), max(size - 1, 0)} - {size}):
            yield path, {"size": shorter}
    filled = [path for path in files if path.stat().st_size]
    for number in range(flips):
        path = filled[number % len(filled)]
        yield path, {"bit": draw.randrange(8 * path.stat().st_size)}


def noticed_by_guard(folder: Path) -> bool:
    """Whether a stage that reads the folder ends before it does, and says where."""
    try:
        with guarded("damage", [folder], {}):
            return False
    except InputError as error:
        return str(error).startswith(f"{folder}/") and "damaged" in str(error)


def noticed_in_cache(path: Path) -> bool:
    """Whether DVC's cache is found to be damaged there, the file being put aside so that it can be given back."""
    content = path.read_bytes()
    with redirect_stdout(StringIO()):
        mend_cache()
    if path.exists():
        return False
    path.write_bytes(content)
    return True


def files_under(folder: Path) -> list[Path]:
    """All files, those first that list the others' digests."""
    return sorted((path for path in folder.rglob("*") if path.is_file()), key=lambda path: (path.name != SUMS, path))


def in_process(states: Path, flips: int, draw: random.Random, most: int | None = None) -> dict[str, Counter[str]]:
    """Damage every kind of file in this folder, each `most` times; how many were noticed."""
    kinds = {name: files_under(Path(name)) for name in READ}
    kinds |= {"checkpoints": files_under(states), "cache": files_under(Path(".dvc/cache/files"))}
    found = {}
    for name, files in kinds.items():
        count = found[name] = Counter()
        every = list(damages(files, flips // len(kinds) + 1, draw))
        for path, how in every if most is None else draw.sample(every, most):
            content = path.read_bytes()
            damage(path, **how)
            if name == "checkpoints":
                seen = find_damage(path.parent) is not None
            else:
                seen = noticed_in_cache(path) if name == "cache" else noticed_by_guard(Path(name))
            rewrite(path, content)
            count += Counter({"truncated" if "size" in how else "flipped": 1, "noticed": seen})
            if not seen:
                print("not noticed:", path, how)
    return found


def by_stages(whole: Path, folder: Path) -> Counter[str]:
    """Damage what a real stage reads, in the workspace and in the cache, and have DVC make it anew."""
    count = Counter[str]()
    for name, stage in READERS.items():
        project, path = fresh(whole, folder), folder / name
        project.run("dvc", "status")  # by which DVC knows times and sizes
        objects = {file.read_bytes(): file for file in files_under(folder / ".dvc/cache/files")}
        for each in (objects[path.read_bytes()], path):
            damage(each, bit=4001)
        said = project.run("dvc", "repro", "--force", "--single-item", stage, code=None).stderr
        count += Counter(runs=1, named=f"error: {name}: damaged" in said)
        project.stage("retrace.cli.main", "check", "--cache")
        project.run("dvc", "repro")
        count += Counter(same=not differing(folder, whole))
    return count


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


def main() -> None:
    flips, seed = options(__doc__, "flips", 1000)
    with finished_toy() as (whole, folder):
        with chdir(whole):
            found = in_process(saved_states(Project(whole)), flips, random.Random(seed))
        found["by stages"] = by_stages(whole, folder / "trial")
    write_json(RESULTS / "damage.json", {"seed": seed, **found})
    print(json.dumps(found, indent=2))


if __name__ == "__main__":
    main()
