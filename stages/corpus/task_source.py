"""A further classification task's folder, in which the stages find it."""

from stages.corpus.classification import TaskData
from stages.corpus.examples import write_task
from stages.corpus.source import task_folder
from stages.corpus.task_card import make_task_card
from stages.harness.records import write_json, written_folder


def write_task_source(task: str, data: TaskData) -> None:
    """Write examples, classes and card, and say what a user should know of the data."""
    card = make_task_card(data)
    with written_folder(task_folder(task)) as folder:
        write_task(folder, data.classes, data.parts)
        write_json(folder / "card.json", card)
    print(*(f"{task}: {finding}" for finding in card["findings"]), sep="\n")
