"""Further classification tasks on data sets of the hub, entries under hub.classification in params.yaml."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from stages.corpus.classification import Table, TaskData, TaskSettings, check_name, read_task
from stages.corpus.hub_dataset import HubDataset, Split, open_split
from stages.harness.settings import build

SECTION = "hub.classification"  # of params.yaml


@dataclass(frozen=True, kw_only=True)
class HubTaskSettings(HubDataset, TaskSettings):
    """A task on a data set; train, dev and test are splits of it."""

    def __post_init__(self) -> None:
        HubDataset.__post_init__(self)
        TaskSettings.__post_init__(self)


def hub_task_settings(params: Mapping[str, Any], task: str) -> HubTaskSettings:
    """The settings of an entry under `hub.classification` in params.yaml.

    Raises InputError where they or its name are wrong.
    """
    check_name(task, f"{SECTION}.{task}")
    return build(HubTaskSettings, params, f"{SECTION}.{task}")


def read_hub_task(settings: HubTaskSettings, key: str) -> TaskData:
    """Read all parts of a task; classes have the data set's names unless the settings give them others.

    Raises InputError where the data set cannot be had, or naming the row where something is wrong.
    """
    names = {"train": settings.train, "dev": settings.dev, "test": settings.test}
    splits = {part: open_split(settings, name, key) for part, name in names.items() if name is not None}
    known = splits["train"].classes.get(settings.label) if settings.classes is None else None
    if known is None:
        return read_task(settings, key, {part: Table(of.name, of.records()) for part, of in splits.items()})
    kept = tuple(name for name in known if name not in settings.drop)
    tables = {part: Table(of.name, _named(of, settings.label, known)) for part, of in splits.items()}
    return read_task(replace(settings, classes=kept), key, tables)


def _named(split: Split, column: str, names: tuple[str, ...]) -> Iterable[tuple[str, Mapping[str, Any]]]:
    """The records with the class's name in place of its number, where it has one; -1 stands for no class."""
    for where, record in split.records():
        number = record[column]
        yield where, {**record, column: names[number] if number in range(len(names)) else number}
