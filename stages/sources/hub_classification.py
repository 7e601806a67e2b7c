"""A further classification task: a data set of the hub, named by an entry in params.yaml → data/classification/<task>.

Checked, and as json lines of text, second text and class number; the classes' names are in classes.json, and what was
found in card.json.

    python -m stages.sources.hub_classification --task ag_news
"""

import argparse

from stages.corpus.hub_settings import SECTION, hub_task_settings
from stages.corpus.hub_task import read_hub_task
from stages.corpus.task_source import write_task_source
from stages.harness.errors import exit_cleanly
from stages.harness.guard import guarded
from stages.harness.settings import read_params


def main() -> None:
    parser = argparse.ArgumentParser(description="Fetch and check a classification task.")
    parser.add_argument("--task", required=True, help="an entry under hub.classification in params.yaml")
    task = parser.parse_args().task
    settings, key = hub_task_settings(read_params(), task), f"{SECTION}.{task}"
    with guarded(f"classification-{task}", [], [key]):
        write_task_source(task, read_hub_task(settings, key))


if __name__ == "__main__":
    exit_cleanly(main)
