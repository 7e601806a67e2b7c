"""A further classification task: a data set of the hub, an entry in data/params.yaml → data/classification/<task>.

The examples are checked and written as json lines with text, second text and class number. The class names are in
classes.json, counts and findings in card.json.

    python -m stages.sources.hub_classification --task ag_news
"""

import argparse
from dataclasses import replace

from retrace.core.errors import InputError, exit_cleanly
from retrace.core.guard import guarded
from retrace.core.settings import DATA_PARAMS, entry_name
from retrace.datasets.examples import TaskData
from retrace.datasets.text import Records
from retrace.files.tasks import parse_task, write_task_source
from retrace.hub.datasets import open_split
from retrace.hub.settings import HubClassificationParams, HubTaskSettings


def main() -> None:
    parser = argparse.ArgumentParser(description="Fetch and check a classification task.")
    about = "an entry under hub.classification in data/params.yaml"
    parser.add_argument("--task", type=entry_name, required=True, help=about)
    task = parser.parse_args().task
    params = HubClassificationParams.read(key=task)
    with guarded(f"classification-{task}", [], params.settings):
        write_task_source(task, read_hub_task(params.task, f"hub.classification.{task}"))


def read_hub_task(settings: HubTaskSettings, key: str) -> TaskData:
    """Read all splits of a task; classes have the data set's names unless the settings name them.

    Raises InputError if the data set cannot be fetched, if a new name of a class is that of another in the data set,
    or naming the row where something is wrong.
    """
    splits = {part: open_split(settings, name, key) for part, name in settings.parts.items()}
    known = splits["train"].classes.get(settings.label)
    classes, dropped = settings.classes, settings.drop
    # If the settings' class names are the data set's, in any order, labels are matched by name; otherwise they are new
    # names for the data set's numbers.
    if known is not None and (classes is None or {*classes} <= {*known} <= {*classes, *dropped}):
        kept = classes or tuple(name for name in known if name not in dropped)
        settings = settings.model_copy(update={"classes": kept})
        named = {part: _named(split.records, settings.label, known) for part, split in splits.items()}
        splits = {part: replace(split, records=named[part]) for part, split in splits.items()}
    elif known is not None:
        _require_new(classes or (), known, key)
    return parse_task(settings, key, splits)


def _require_new(names: tuple[str, ...], known: tuple[str, ...], key: str) -> None:
    """Raise InputError if a class gets the name that the data set has for another one, but for upper and lower case."""
    numbers = {name.casefold(): number for number, name in enumerate(known)}
    for number, name in enumerate(names):
        theirs = numbers.get(name.casefold(), number)
        if theirs != number:
            raise InputError(
                f"{DATA_PARAMS}: {key}.classes: {name!r} is not allowed for class {number}, as the data set calls "
                f"class {theirs} {known[theirs]!r}; expected all of its names, spelled as there, or new ones"
            )


def _named(records: Records, column: str, names: tuple[str, ...]) -> Records:
    """The records with the class's name in place of its number, if it has one; -1 stands for no class."""
    for where, cells in records:
        number = cells[column]
        if isinstance(number, int) and number >= len(names):
            raise InputError(f"{where}: {column} {number} is not allowed; expected at most {len(names) - 1}")
        yield where, {**cells, column: names[number] if number in range(len(names)) else number}


if __name__ == "__main__":
    exit_cleanly(main)
