"""A local hub by hand: `python -m tests.hub FOLDER [--seconds N]` prints how to reach it and serves for N seconds.

FOLDER/models/ORGANISATION/NAME and FOLDER/datasets/ORGANISATION/NAME are its repositories at the start; with
--content, also tiny data sets and models under published names. What is published to it ends with it.

--study studies/NAME puts up what the study's small run reads, at the very commits that its params.yaml pins, and writes
small versions of files of one's own that it names and that are not there. Files of the real hub have the same commits:
HF_HOME, which is printed too, keeps the small ones apart from them.
"""

import argparse
import contextlib
import shlex
import time
from pathlib import Path
from typing import get_args

from tests.hub import WRITE_TOKEN, LocalHub
from tests.hub.repository import Kind


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m tests.hub", description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--seconds", type=float, default=600, help="stop after so long (default 600)")
    parser.add_argument("--content", action="store_true", help="tiny data sets and models under published names")
    parser.add_argument("--study", type=Path, help="what the small run of this folder's study reads")
    chosen = parser.parse_args()
    with LocalHub(chosen.folder) as hub:
        for kind in get_args(Kind):
            for folder in sorted((chosen.folder / f"{kind}s").glob("*/*")):
                name = f"{folder.parent.name}/{folder.name}"
                print(f"{name}@{hub.add(kind, name, folder)}")
        if chosen.content or chosen.study:
            _add(hub, chosen.content, chosen.study)
        home = shlex.quote(str((chosen.folder / "home").resolve()))
        access = f"HF_ENDPOINT={hub.endpoint} HF_HUB_DISABLE_XET=1 HF_TOKEN={WRITE_TOKEN}"
        print(f"export {access} HF_HOME={home}", flush=True)
        with contextlib.suppress(KeyboardInterrupt):
            time.sleep(chosen.seconds)


def _add(hub: LocalHub, content: bool, study: Path | None) -> None:
    from datasets import disable_progress_bars  # here, for these imports take seconds

    from tests.hub.content import add_datasets, add_models
    from tests.hub.content.studies import add_study, fill_folders

    disable_progress_bars()
    for name, commit in ({**add_datasets(hub), **add_models(hub)} if content else {}).items():
        print(f"{name}@{commit}")
    if study:
        print(*add_study(hub, study), sep="\n")
        for path in fill_folders(study):
            print(f"{path}: a small version; remove it before the study is run as published")


if __name__ == "__main__":
    main()
