"""A data source's folder: the same names whatever the source, so every reader is the same.

text/wiki.{train,valid,test}.tokens   sst2/{train,dev}.tsv   squad/{train,dev}.json   card.json

Further classification tasks lie beside the sources and go with any of them.
"""

from pathlib import Path

DATA = Path("data")
TASKS = DATA / "classification"


def source_folder(data: str) -> Path:
    """The folder of the source called `data` in params.yaml."""
    return DATA / data


def sentences_path(folder: Path, part: str) -> Path:
    """Labelled sentences of `train` or `dev`."""
    return folder / "sst2" / f"{part}.tsv"


def questions_path(folder: Path, part: str) -> Path:
    """Questions of `train` or `dev`."""
    return folder / "squad" / f"{part}.json"


def task_folder(task: str, data: Path = DATA) -> Path:
    """What is known of a classification task: its classes and, of all but SST-2, its examples."""
    return data / TASKS.name / task


def running_text(folder: Path) -> Path:
    """The folder of the running text."""
    return folder / "text"
