"""Settings and code edited at a stage's first and last moments: does DVC record what the stage really did?

Every trial removes what `tokenize` wrote, starts `dvc repro tokenize`, and edits a setting or the stage's own code:
within a second after DVC began the stage, or when the stage writes its last folder, or within half a second after it
wrote its last file, as DVC is about to check the files itself; a stage that ends before its edit counts as the last
case. Either the stage must fail and name what changed, or the inputs and outputs in dvc.lock must be those of an
undisturbed run. Another `dvc repro` must end with the outputs of the edited version.

    python -m tests.campaigns.edits [--trials 18] [--seed 1]
"""

import json
import time
from collections.abc import Iterator
from pathlib import Path
from random import Random

from ruamel.yaml import YAML

from tests.campaigns.trials import Outcome, main, without
from tests.toy import Project

STAGE, RECORD = "tokenize", "reports/runs/stages/tokenize.json"
EDITS = {
    "params.yaml": ("vocab_size: 400", "vocab_size: 390"),
    "stages/tokenize.py": ('"counts.json", counts', '"counts.json", {"edited": counts}'),
}
MOMENTS = {"first": 1.0, "last": 0.0, "after": 0.5}  # seconds in which it is edited, once one of these is there
AWAITED = {"last": ("models/.tokens.partial", "models/tokens"), "after": (RECORD,)}


def edit(project: Project, name: str) -> None:
    """Make the edit of this file."""
    path = project.folder / name
    before = path.read_text()
    after = before.replace(*EDITS[name])
    assert after != before
    path.write_text(after)


def recorded(project: Project) -> tuple[str, str]:
    """What dvc.lock says that the stage used, and that it made, but for the record of its time."""
    stage = YAML(typ="safe").load(project.folder / "dvc.lock")["stages"][STAGE]
    made = [out for out in stage["outs"] if out["path"] != RECORD]
    return json.dumps([stage["deps"], stage["params"]]), json.dumps(made)


def trial(project: Project, right: dict[str, tuple[str, str]], name: str, moment: str, pause: float) -> Outcome:
    """Edit a file at a moment; edits after the stage are not judged, as only DVC looks at the files then."""
    with project.start("dvc", "repro", STAGE) as running:
        assert running.stdout is not None
        while moment == "first" and not running.stdout.readline().startswith("Running stage"):
            assert running.poll() is None
        while moment != "first" and not any((project.folder / path).exists() for path in AWAITED[moment]):
            assert running.poll() is None
            time.sleep(0.001)
        time.sleep(pause)
        if (project.folder / RECORD).exists():
            moment = "after"
        edit(project, name)
        _, said = running.communicate()
    if running.returncode:
        ended, wrong = "failed", "" if f"error: {name}" in said else said
    else:
        versions = {right[""]: "done before the edit", right[name]: "done with the edit"}
        ended = versions.get(recorded(project), "recorded what it was not done with")
        wrong = "" if recorded(project) in versions else ended
    project.run("dvc", "repro", STAGE)
    if not wrong and recorded(project) != right[name]:
        wrong = "a further repro has other outputs"
    if wrong and moment == "after":
        print(wrong)
    return Outcome(f"{name}, {moment}", [wrong] if wrong and moment != "after" else [], {ended: 1})


def campaign(whole: Path, folder: Path, count: int, draw: Random) -> Iterator[Outcome]:
    """Each edit at each moment in turn."""
    right = {}  # what is recorded of a run with each edit and of one without, by the edited file
    for name in ("", *EDITS):
        project = without(whole, folder / "trial", STAGE)
        if name:
            edit(project, name)
        project.run("dvc", "repro", STAGE)
        right[name] = recorded(project)
    for number in range(count):
        name, moment = [*EDITS][number % 2], [*MOMENTS][number // 2 % 3]
        project = without(whole, folder / "trial", STAGE)
        yield trial(project, right, name, moment, draw.uniform(0, MOMENTS[moment]))


if __name__ == "__main__":
    main(campaign, __doc__, 18)
