"""The user's own SST-2 and SQuAD: which files become which split."""

from pathlib import Path
from typing import Any

import pytest

from retrace.core.errors import InputError
from retrace.core.paths import questions_path, sentences_path
from retrace.core.settings import build
from retrace.datasets.examples import read_sentences
from retrace.datasets.text import Table
from retrace.files.settings import FilesSettings
from retrace.hub.settings import HubSentences
from retrace.hub.source import write_sentences

PIN = f"org/name@{'0' * 40}"


def _own(folder: Path, *names: str) -> dict[str, Any]:
    """Empty files of one's own; returns where they are."""
    for name in names:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).touch()
    return {name: str(folder / name) for name in ("text", "sst2", "squad")}


@pytest.mark.parametrize(
    ("test", "split", "expected"),
    [
        (None, None, {"dev": "dev"}),
        ("held", None, {"dev": "dev", "test": "held"}),
        (None, 0.8, {"test": "dev"}),  # the rest of train is dev
        ("held", 0.8, {"test": "held"}),
    ],
)
def test_the_official_dev_file_is_the_test_where_train_is_split(tmp_path: Path, test, split, expected) -> None:
    own = _own(tmp_path, "sst2/dev.tsv", "squad/dev.json") | {"squad_train": "train.json", "squad_dev": "dev.json"}
    for task, path, ending in (("sst2", sentences_path, "tsv"), ("squad", questions_path, "json")):
        named = {f"{task}_split": split, f"{task}_test": test and f"{test}.{ending}"}
        found = FilesSettings(**own, **named).chosen(Path("to"))
        wanted = {part: tmp_path / task / f"{name}.{ending}" for part, name in ({"train": "train"} | expected).items()}
        parts = {part: found.get(path(Path("to"), part)) for part in ("train", "dev", "test")}
        assert {part: file for part, file in parts.items() if file} == wanted


def test_a_split_without_an_official_dev_file_leaves_no_test(tmp_path: Path) -> None:
    tasks = FilesSettings(**_own(tmp_path), sst2_split=0.8, squad_split=0.8).tasks.values()
    assert [list(splits.parts) for splits in tasks] == [["train"], ["train"]]


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"squad_dev": "../dev.json"}, "squad_dev: '../dev.json' is not allowed; expected a file in the folder"),
        ({"sst2_test": "dev.tsv"}, "sst2_test: 'dev.tsv' is not allowed; expected another file than train.tsv and"),
        ({"squad_test": "train-v2.0.json", "squad_split": 0.8}, "squad_test: 'train-v2.0.json' is not allowed"),
        ({"squad_dev": "train-v2.0.json", "squad_split": 0.8}, "squad_dev: 'train-v2.0.json' is not allowed"),
    ],
)
def test_a_test_file_that_chooses_or_trains_is_refused(settings: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=f"files.{message}"):
        build(FilesSettings, {"files": {"text": "t", "sst2": "s", "squad": "q", **settings}}, "files")


def test_a_test_set_without_labels_is_refused_in_one_line(tmp_path: Path) -> None:
    path = tmp_path / "test.tsv"
    path.write_text("index\tsentence\n0\tgood\n")
    with pytest.raises(InputError, match=r"no column 'label'.*; GLUE publishes its test set without labels, so it"):
        read_sentences(path)
    settings = HubSentences(repository=PIN)
    rows = Table("glue test", [("glue test: row 1", {"sentence": "good", "label": -1})])
    with pytest.raises(InputError, match="glue test: row 1: label -1 is not allowed; expected 0 or 1; GLUE publishes"):
        write_sentences(path, rows, settings)
