"""A further classification task: a data set of the hub, an entry in data/params.yaml → data/classification/<task>.

Checked, and as json lines of text, second text and class number; the classes' names are in classes.json, and what was
found in card.json.

    python -m stages.sources.hub_classification --task ag_news
"""

import argparse

from retrace.core.errors import exit_cleanly
from retrace.core.guard import guarded
from retrace.sources.hub_settings import HubClassificationParams
from retrace.sources.hub_tasks import read_hub_task
from retrace.sources.tasks import write_task_source


def main() -> None:
    parser = argparse.ArgumentParser(description="Fetch and check a classification task.")
    parser.add_argument("--task", required=True, help="an entry under hub.classification in data/params.yaml")
    task = parser.parse_args().task
    params = HubClassificationParams.read(key=task)
    with guarded(f"classification-{task}", [], params.settings):
        write_task_source(task, read_hub_task(params.task, f"hub.classification.{task}"))


if __name__ == "__main__":
    exit_cleanly(main)
