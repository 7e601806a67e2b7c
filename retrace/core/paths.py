"""The names of files in a data source's folder, which are the same for every source.

text/wiki.{train,valid,test}.tokens   sst2/{train,dev}.tsv   squad/{train,dev}.json   card.json

A task may have a test split too, in sst2/test.tsv, squad/test.json or a further task's test.jsonl. Further tasks lie
beside the sources and go with any of them, in data/classification and data/question_answering.

Models to start from lie in data/model (for pretraining) and data/checkpoints (for methods that start from another
model): weights, config, tokenizer and, in source.json, their origin.
"""

from pathlib import Path
from typing import Any

from retrace.core.errors import InputError
from retrace.core.files import read_json

UNKNOWN = "<unk>"  # WikiText's mark for a word that it left out
PROJECT = Path(__file__).parents[2]  # a study runs in a folder of its own
WORKSPACES = Path(".retrace/studies")  # of those folders, in the project that they are copies of
LOCKFILES = (Path("dvc.lock"), Path("data/dvc.lock"))
DATA = Path("data")
TASKS = DATA / "classification"
QUESTIONS = DATA / "question_answering"
OWN = DATA / "own"  # the user's files
ON_TEST = "-test"  # suffix of a task's name for its figures on the test set
CHECKPOINT = DATA / "model"
TOKENIZER, TOKENS, PRETRAINED = (Path("models") / name for name in ("tokenizer", "tokens", "pretrained"))
FACTS = "source.json"


def require_checkout(*names: Path | str, folder: Path = Path()) -> None:
    """Raise InputError if a folder lacks these files of a checkout; by default the pipeline and DVC's folder."""
    for path in [folder / name for name in names or ("dvc.yaml", ".dvc")]:
        if not path.exists():
            raise InputError(f"{path}: no such file or folder; run it in the folder of a checkout")


def source_folder(data: str) -> Path:
    """The folder of the source called `data` in params.yaml."""
    return DATA / data


def running_text(folder: Path) -> Path:
    """The folder of the running text."""
    return folder / "text"


def task_folder(task: str, data: Path = DATA) -> Path:
    """The folder of a classification task: its classes and, except for SST-2, its examples."""
    return data / TASKS.name / task


def sentences_path(folder: Path, part: str, task: str = "sst2") -> Path:
    """Labelled texts of `train`, `dev` or `test`: SST-2's in the source's folder, other tasks' beside the sources."""
    return folder / task / f"{part}.tsv" if task == "sst2" else task_folder(task, folder.parent) / f"{part}.jsonl"


def questions_path(folder: Path, part: str, task: str = "squad") -> Path:
    """Questions of `train`, `dev` or `test`: SQuAD's in the source's folder, other sets' beside the sources."""
    return (folder / task if task == "squad" else folder.parent / QUESTIONS.name / task) / f"{part}.json"


def card_path(task: str) -> Path:
    """The data card of a further task of either kind."""
    questions = QUESTIONS / task / "card.json"
    return questions if questions.is_file() else TASKS / task / "card.json"


def on_test(task: str) -> str:
    """The name under which a task's figures on its test set are kept."""
    return f"{task}{ON_TEST}"


def has_test(folder: Path, task: str) -> bool:
    """Whether a task has a test split besides the validation split; `folder` is the source's."""
    return any(path(folder, "test", task).is_file() for path in (sentences_path, questions_path))


def splits_of(folder: Path, task: str) -> tuple[str, ...]:
    """train, dev and, if the task has one, test."""
    return ("train", "dev", "test") if has_test(folder, task) else ("train", "dev")


def named_checkpoint(name: str) -> Path:
    """The folder of an entry under `checkpoints` in data/params.yaml."""
    return DATA / "checkpoints" / name


def checkpoint_facts(folder: Path) -> dict[str, Any]:
    """The origin of a model's weights and what their card says; `from` is null where they began at random."""
    return read_json(folder / FACTS)


def given_checkpoint() -> Path | None:
    """The folder of the model that pretraining starts from; None for random weights."""
    return None if checkpoint_facts(CHECKPOINT)["from"] is None else CHECKPOINT
