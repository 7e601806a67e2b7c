"""A further classification task: the files that its entry in data/params.yaml names → data/classification/<task>.

Checked, and as json lines of text, second text and class number, whatever the format was; the classes' names are in
classes.json, and what was found in card.json.

    python -m stages.sources.classification --task ag_news
"""

import argparse
from pathlib import Path

from retrace.core.errors import exit_cleanly
from retrace.core.guard import guarded
from retrace.sources.settings import ClassificationParams
from retrace.sources.tasks import check_files, read_files, write_task_source


def main() -> None:
    parser = argparse.ArgumentParser(description="Read and check a classification task.")
    parser.add_argument("--task", required=True, help="an entry under classification in data/params.yaml")
    task = parser.parse_args().task
    params, key = ClassificationParams.read(key=task), f"classification.{task}"
    settings = params.task
    check_files(settings, key)
    with guarded(f"classification-{task}", [Path(settings.folder)], params.settings):
        write_task_source(task, read_files(settings, key))


if __name__ == "__main__":
    exit_cleanly(main)
