"""Rows of a data set of the hub that was prepared before: neither the hub nor `datasets` is asked for them."""

import json
import sys
from dataclasses import replace
from importlib.metadata import version
from pathlib import Path

import pyarrow as pa
import pytest
from huggingface_hub import constants

from retrace.core.errors import InputError
from retrace.datasets.text import read_documents, text_path
from retrace.hub.datasets import INFO, licence, open_split
from retrace.hub.settings import HubDataset, HubTaskSettings, HubText
from stages.sources.hub import write_running_text
from stages.sources.hub_classification import read_hub_task

COMMIT = "0123456789" * 4
SOURCE = HubDataset(repository=f"org/name@{COMMIT}", config="small")


def _write(path: Path, words: list[str], labels: list[int]) -> None:
    rows = pa.table({"word": words, "label": labels})
    with pa.ipc.new_stream(path, rows.schema) as file:
        file.write_table(rows)


@pytest.fixture(autouse=True)
def kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder of a data set whose training split is in two files."""
    monkeypatch.setattr(constants, "HF_HOME", str(tmp_path))
    folder = tmp_path / f"retrace/datasets-{version('datasets')}/org/name/{COMMIT}/small"
    folder.mkdir(parents=True)
    _write(folder / "name-train-00001-of-00002.arrow", ["d", "e"], [1, 1])
    _write(folder / "name-train-00000-of-00002.arrow", ["a", "b", "c"], [0, 1, 0])
    _write(folder / "name-test.arrow", ["x"], [-1])
    splits = {name: {"name": name, "num_examples": size} for name, size in (("train", 5), ("test", 1))}
    word, label = {"dtype": "string", "_type": "Value"}, {"names": ["low", "high"], "_type": "ClassLabel"}
    info = {"license": "mit", "features": {"word": word, "label": label}, "splits": splits}
    (folder / INFO).write_text(json.dumps(info))
    return folder


def _words(split: str) -> str:
    return "".join(row["word"] for _, row in open_split(SOURCE, split, "hub.text").records)


def test_rows_classes_and_licence() -> None:
    split = open_split(SOURCE, "train", "hub.text")
    assert split.classes == {"label": ("low", "high")}
    assert next(iter(split.records)) == (f"org/name@{COMMIT} small train: row 1", {"word": "a", "label": 0})
    assert licence(SOURCE, "hub.text") == "mit"


def test_parts_of_splits() -> None:
    expected = {"train[:60%]": "abc", "train[3:]": "de", "train[-2:]+test": "dex", "test+train[1:4]": "xbcd"}
    assert {split: _words(split) for split in expected} == expected


def test_a_line_of_a_document_that_looks_like_a_title_begins_no_article(kept: Path, tmp_path: Path) -> None:
    _write(kept / "name-test.arrow", ["one\n = Two = \n\nthree", "four", "five"], [0, 0, 0])
    write_running_text(tmp_path, HubText(**SOURCE.model_dump(), valid="test", text="word"))
    documents = read_documents(text_path(tmp_path, "test"))
    assert list(documents) == ["one\n= Two =\nthree", "four", "five"]


def test_values_of_a_column_of_several_types_are_read_as_they_were_written(kept: Path) -> None:
    """`datasets` stores each as its json, so that text would be in quotes."""
    info = json.loads((kept / INFO).read_text())
    info["features"]["word"] = {"_type": "Json"}
    (kept / INFO).write_text(json.dumps(info))
    _write(kept / "name-test.arrow", [json.dumps('a "good" film'), "1984"], [1, 0])
    rows = [row for _, row in open_split(SOURCE, "test", "hub.text").records]
    assert rows == [{"word": 'a "good" film', "label": 1}, {"word": 1984, "label": 0}]


def test_a_split_that_is_not_there() -> None:
    with pytest.raises(InputError, match=rf'params.yaml: hub.text: org/name@{COMMIT}: Unknown split "dev".*train'):
        open_split(SOURCE, "dev", "hub.text")


@pytest.mark.parametrize("left", [None, 0, 8, "a batch"])
def test_kept_rows_that_were_lost_are_noticed(kept: Path, left: int | str | None) -> None:
    """A file is gone, empty, or cut between two batches, where Arrow takes it for whole."""
    path = kept / "name-train-00000-of-00002.arrow"
    rows = pa.table({"word": ["a", "b", "c"], "label": [0, 1, 0]})
    with pa.ipc.new_stream(path, rows.schema) as file:
        file.write_table(rows[:1])
        first = path.stat().st_size
        file.write_table(rows[1:])
    content = path.read_bytes()
    path.unlink()
    if left is not None:
        path.write_bytes(content[: first if left == "a batch" else int(left)])
    for split in ("train", "train[:60%]"):
        with pytest.raises(InputError, match=rf"^{kept}: rows of train are missing; remove this folder and run again$"):
            _words(split)


def test_datasets_is_not_imported_for_whole_splits(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "datasets", None)  # importing it fails
    assert _words("train") == "abcde"
    with pytest.raises(ImportError):
        open_split(SOURCE, "train[:60%]", "hub.text")


def test_a_class_that_is_left_out_is_none_of_the_classes(kept: Path) -> None:
    info = json.loads((kept / INFO).read_text())
    info["features"]["label"]["names"] = ["low", "middle", "high"]
    (kept / INFO).write_text(json.dumps(info))
    _write(kept / "name-train-00001-of-00002.arrow", ["d", "e"], [2, 1])
    _write(kept / "name-test.arrow", ["x", "y"], [2, 1])
    settings = HubTaskSettings(**SOURCE.model_dump(), dev="test", text="word", drop=("middle",))
    data = read_hub_task(settings, "hub.classification.own")
    assert (data.classes, data.dropped) == (("low", "high"), 3)
    labels = {part: [(example.text, example.label) for example in found] for part, found in data.parts.items()}
    assert labels == {"train": [("a", 0), ("c", 0), ("d", 1)], "dev": [("x", 1)]}


def test_classes_have_the_data_sets_names_in_any_order_or_new_ones_for_its_numbers() -> None:
    settings = HubTaskSettings(**SOURCE.model_dump(), dev=None, split=0.6, text="word")
    chosen = [settings.model_copy(update={"classes": names}) for names in (None, ("bad", "good"), ("high", "low"))]
    own, renamed, turned = (read_hub_task(each, "hub.classification.own") for each in chosen)
    assert [each.classes for each in (own, renamed, turned)] == [("low", "high"), ("bad", "good"), ("high", "low")]
    assert renamed.parts == own.parts
    flipped = {part: [replace(row, label=1 - row.label) for row in rows] for part, rows in own.parts.items()}
    assert turned.parts == flipped


@pytest.mark.parametrize("names", [("High", "Low"), ("high", "other")])
def test_a_class_does_not_get_the_name_of_another(names: tuple[str, str]) -> None:
    """Its own names in another order are matched by name; with one that is not its own, names go by number."""
    settings = HubTaskSettings(**SOURCE.model_dump(), dev=None, split=0.6, text="word", classes=names)
    said = rf"hub\.classification\.own\.classes: '{names[0]}' is not allowed for class 0, as .* calls class 1 'high'; "
    with pytest.raises(InputError, match=said):
        read_hub_task(settings, "hub.classification.own")
    renamed = settings.model_copy(update={"classes": ("Low", "top")})
    assert read_hub_task(renamed, "hub.classification.own").classes == ("Low", "top")


def test_a_column_that_is_not_there_and_a_split_without_labels_are_named() -> None:
    for column, said in (
        ("review", r"small train: row 1: no column 'review'; the columns are: word, label; the column is set by hub\."),
        ("word", r"small test: row 1: label '-1' is not allowed; expected one of low, high$"),
    ):
        settings = HubTaskSettings(**SOURCE.model_dump(), dev="test", text=column)
        with pytest.raises(InputError, match=said):
            read_hub_task(settings, "hub.classification.own")


def test_a_value_that_python_cannot_hold(kept: Path) -> None:
    date = pa.array([10**12], pa.timestamp("s"))  # milliseconds, stored as seconds
    table = pa.table({"word": ["x"], "label": [0], "date": date})
    with pa.ipc.new_stream(kept / "name-test.arrow", table.schema) as file:
        file.write_table(table)
    with pytest.raises(InputError, match=rf"^org/name@{COMMIT} small test: "):
        _words("test")
