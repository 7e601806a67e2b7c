"""A further classification task: the files that its entry in params.yaml names → data/classification/<task>.

Checked, and as json lines of text, second text and class number, whatever the format was; the classes' names are in
classes.json, and what was found in card.json.

    python -m stages.sources.classification --task ag_news
"""

import argparse
from pathlib import Path

from stages.corpus.classification import SECTION, read_task, task_settings
from stages.corpus.examples import write_task
from stages.corpus.source import task_folder
from stages.corpus.task_card import make_task_card
from stages.harness.errors import InputError, exit_cleanly
from stages.harness.guard import guarded
from stages.harness.records import write_json, written_folder
from stages.harness.settings import read_params


def main() -> None:
    parser = argparse.ArgumentParser(description="Read and check a classification task.")
    parser.add_argument("--task", required=True, help="an entry under classification in params.yaml")
    task = parser.parse_args().task
    settings, key = task_settings(read_params(), task), f"{SECTION}.{task}"
    if not Path(settings.folder).is_dir():
        raise InputError(f"params.yaml: {key}.folder: {settings.folder!r} is not a folder")
    with guarded(f"{SECTION}-{task}", [Path(settings.folder)], [key]):
        data = read_task(settings, key)
        card = make_task_card(data)
        with written_folder(task_folder(task)) as folder:
            write_task(folder, data.classes, data.parts)
            write_json(folder / "card.json", card)
        print(*(f"{task}: {finding}" for finding in card["findings"]), sep="\n")


if __name__ == "__main__":
    exit_cleanly(main)
