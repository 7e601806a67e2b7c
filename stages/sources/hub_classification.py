"""A further classification task: a data set of the hub, named by an entry in params.yaml → data/classification/<task>.

Checked, and as json lines of text, second text and class number; the classes' names are in classes.json, and what was
found in card.json.

    python -m stages.sources.hub_classification --task ag_news
"""

import argparse

from retrace.core.errors import exit_cleanly
from retrace.core.guard import guarded
from retrace.core.settings import read_params, values_of
from retrace.hub.settings import SECTION, hub_task_settings
from retrace.hub.source import read_hub_task
from retrace.sources.tasks import write_task_source


def main() -> None:
    parser = argparse.ArgumentParser(description="Fetch and check a classification task.")
    parser.add_argument("--task", required=True, help="an entry under hub.classification in params.yaml")
    task = parser.parse_args().task
    params, key = read_params(), f"{SECTION}.{task}"
    settings = hub_task_settings(params, task)
    with guarded(f"classification-{task}", [], values_of(params, [key])):
        write_task_source(task, read_hub_task(settings, key))


if __name__ == "__main__":
    exit_cleanly(main)
