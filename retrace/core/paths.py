"""The names of folders and files that stages share.

data/text/wiki.{train,valid,test}.tokens   the running text
data/classification/<task>/                a classification task: {train,dev}.jsonl and its classes.json
data/question_answering/<task>/            a set of questions: {train,dev}.json

A task may have a test split too. Each of these folders has a data card, card.json, and a list of digests of its own, so
that a stage depends on the data that it reads and on no other.

Models to start from are in data/model (for pretraining) and data/checkpoints (for methods that start from another
model): weights, config, tokenizer and, in source.json, their origin.
"""

from pathlib import Path
from typing import Any

from retrace.core.errors import InputError
from retrace.core.files import read_object

UNKNOWN = "<unk>"  # WikiText's mark for an unknown word
PROJECT = Path(__file__).parents[2]  # a study runs in a folder of its own
WORKSPACES = Path(".retrace/studies")  # where those folders are, in the project that they are copies of
STATES = Path(".retrace/states")  # checkpoints of training
LOCKFILES = (Path("dvc.lock"), Path("data/dvc.lock"))
DATA = Path("data")
TEXT = DATA / "text"
TASKS = DATA / "classification"
QUESTIONS = DATA / "question_answering"
CARD = "card.json"
OWN = DATA / "own"  # the user's files
ON_TEST = "-test"  # suffix of a task's name for its figures on the test set
CHECKPOINT = DATA / "model"
TOKENIZER, TOKENS, PRETRAINED = (Path("models") / name for name in ("tokenizer", "tokens", "pretrained"))
FACTS = "source.json"


def require_checkout(*names: Path | str, folder: Path = Path()) -> None:
    """Raise InputError if a folder lacks these files of a checkout; by default the pipeline and DVC's folder."""
    for path in [folder / name for name in names or ("dvc.yaml", ".dvc")]:
        if not path.exists():
            above = [place for place in Path.cwd().parents if (place / "dvc.yaml").is_file()]
            above.sort(key=lambda place: not (place / ".dvc").is_dir())  # data/ and studies/ have a dvc.yaml too
            where = above[0] if above else "the folder of a checkout"
            raise InputError(f"{path}: no such file or folder; run it in {where}")


def questions_path(folder: Path, part: str) -> Path:
    """Questions of `train`, `dev` or `test`, in SQuAD's format, in the folder of their task."""
    return folder / f"{part}.json"


def examples_path(folder: Path, part: str) -> Path:
    """Examples of `train`, `dev` or `test` of a classification task, in its folder."""
    return folder / f"{part}.jsonl"


def on_test(task: str) -> str:
    """The name under which a task's figures on its test set are kept."""
    return f"{task}{ON_TEST}"


def task_and_part(name: str) -> tuple[str, str]:
    """The task whose figures are kept under a name, and the split that they are computed on: dev or test."""
    task = name.removesuffix(ON_TEST)
    return task, "dev" if task == name else "test"


def has_test(folder: Path) -> bool:
    """Whether the task in a folder has a test split besides the validation split."""
    return any(path(folder, "test").is_file() for path in (examples_path, questions_path))


def splits_of(folder: Path) -> tuple[str, ...]:
    """train, dev and, if the task has one, test."""
    return ("train", "dev", "test") if has_test(folder) else ("train", "dev")


def named_checkpoint(name: str) -> Path:
    """The folder of an entry under `checkpoints` in data/params.yaml."""
    return DATA / "checkpoints" / name


def checkpoint_facts(folder: Path) -> dict[str, Any]:
    """The origin of a model's weights and what their card says; `from` is null if they started at random."""
    return read_object(folder / FACTS)


def given_checkpoint() -> Path | None:
    """The folder of the model that pretraining starts from; None for random weights."""
    return None if checkpoint_facts(CHECKPOINT)["from"] is None else CHECKPOINT
