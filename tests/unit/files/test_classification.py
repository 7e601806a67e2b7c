"""Classification tasks in right files, and settings that do not fit them; tests/campaigns has the wrong files."""

import csv
import json
import re
from datetime import datetime
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from retrace.core.errors import InputError
from retrace.datasets.card import examples_card
from retrace.datasets.examples import Example, TaskData, read_classes, read_examples, write_task
from retrace.datasets.splits import held_out_split
from retrace.files.settings import ClassificationParams, ClassificationSettings, check_files
from retrace.files.tasks import read_files

TOPICS = ("world", "sports", "business", "science")
ROWS = pd.DataFrame({"title": ["One", "Two", "Three"], "body": ['a "quoted", text', "2nd", "3rd"], "label": [*"bac"]})
XML = """<sentences><sentence id="7"><text>Good <b>fish</b>, bad wine.</text><aspectTerms>
<aspectTerm term="fish" polarity="positive"/><aspectTerm term="wine" polarity="negative"/></aspectTerms></sentence>
<sentence id="8"><text>We left.</text></sentence>
<sentence id="9"><text>Odd tea.</text><aspectTerm term="tea" polarity="conflict"/></sentence></sentences>"""
WRITERS: dict[str, Any] = {
    "tsv": lambda path: ROWS.to_csv(path, sep="\t", index=False, quoting=csv.QUOTE_NONE),
    "csv": lambda path: ROWS.to_csv(path, index=False),
    "jsonl": lambda path: ROWS.to_json(path, orient="records", lines=True),
    "parquet": ROWS.to_parquet,
}


def _read(folder: Path, name: str, content: str | bytes | None = None, **settings: Any) -> Any:
    if content is not None:
        (folder / name).write_bytes(content.encode() if isinstance(content, str) else content)
    settings = {"dev": name} | settings
    return read_files(ClassificationSettings(folder=str(folder), train=name, **settings), "classification.own")


@pytest.mark.parametrize(("name", "format"), [*((f"f.{ending}", None) for ending in WRITERS), ("tsv.txt", "tsv")])
def test_the_format_is_that_of_the_suffix_unless_it_is_named(tmp_path: Path, name: str, format: str | None) -> None:
    WRITERS[format or name.removeprefix("f.")](tmp_path / name)
    data = _read(tmp_path, name, format=format, text=("title", "body"))
    examples = [Example('One a "quoted", text', None, 1), Example("Two 2nd", None, 0), Example("Three 3rd", None, 2)]
    assert (data.classes, data.parts) == (("a", "b", "c"), {"train": examples, "dev": examples})


def test_semeval_gives_a_row_for_each_term(tmp_path: Path) -> None:
    data = _read(tmp_path, "train.xml", XML, pair="term", label="polarity", drop=("conflict",))
    assert (data.classes, data.dropped) == (("negative", "positive"), 2)
    assert data.parts["dev"] == [Example("Good fish, bad wine.", "fish", 1), Example("Good fish, bad wine.", "wine", 0)]
    names = ("positive", "negative", "conflict")
    data = _read(tmp_path, "train.xml", text="term", pair="text", label="polarity", classes=names)
    assert data.parts["train"][2] == Example("tea", "Odd tea.", 2)


def test_a_long_sentence_is_not_written_for_each_of_very_many_terms(tmp_path: Path) -> None:
    terms = '<aspectTerm term="ale" polarity="positive"/>' * 2**10
    text = f"<sentences><sentence><text>{'ale ' * 2**18}</text>{terms}</sentence></sentences>"
    with pytest.raises(InputError, match=rf"train\.xml: it unpacks to more than 100 times its {len(text):,} bytes$"):
        _read(tmp_path, "train.xml", text, label="polarity")


def test_a_quoted_cell_may_hold_a_line_break(tmp_path: Path) -> None:
    data = _read(tmp_path, "f.csv", 'text,label\n"one\ntwo",x\nthree,y\n')
    assert data.parts["train"][0].text == "one\ntwo"


def _jsonl_of(*labels: object) -> str:
    return "".join(json.dumps({"text": f"text {i}", "label": label}) + "\n" for i, label in enumerate(labels))


@pytest.mark.parametrize(
    ("labels", "classes", "names", "numbers"),
    [
        ((2, 0, 10.0), None, ("0", "2", "10"), [1, 0, 2]),
        ((1, -2, 0, -10), None, ("-10", "-2", "0", "1"), [3, 1, 2, 0]),
        (("None", " a ", "10"), None, ("10", "None", "a"), [1, 2, 0]),
        ((1, 0, 1), ("no", "yes"), ("no", "yes"), [1, 0, 1]),
        (("yes", "no"), ("no", "yes"), ("no", "yes"), [1, 0]),
        ((2, 1), ("1", "2"), ("1", "2"), [1, 0]),
        ((3, 0, 1), TOPICS, TOPICS, [3, 0, 1]),
    ],
)
def test_labels_are_names_or_numbers(tmp_path: Path, labels, classes, names, numbers) -> None:
    data = _read(tmp_path, "f.jsonl", _jsonl_of(*labels), classes=classes)
    assert (data.classes, data.notes) == (names, ())
    assert [example.label for example in data.parts["train"]] == numbers


def test_numbers_from_1_to_the_last_name_are_counted_from_1(tmp_path: Path) -> None:
    data = _read(tmp_path, "f.jsonl", _jsonl_of(3, "4", 1, "sports"), classes=TOPICS)
    assert [example.label for example in data.parts["train"]] == [2, 3, 0, 1]
    assert examples_card(data)["findings"][0] == "labels are numbered from 1: 1 is world, 4 is science"


def test_classes_that_differ_only_in_case_are_a_finding(tmp_path: Path) -> None:
    data = _read(tmp_path, "f.jsonl", _jsonl_of("Positive", "negative", "positive"))
    said = [f"class {name} differs from another only in case" for name in ("Positive", "positive")]
    assert examples_card(data)["findings"][:2] == said


def test_a_null_part_of_a_joined_text_is_left_out(tmp_path: Path) -> None:
    rows = [{"title": None, "body": "b", "label": "x"}, {"title": "a", "body": "b", "label": "y"}]
    lines = "".join(f"{json.dumps(row)}\n" for row in rows)
    data = _read(tmp_path, "f.jsonl", lines, text=("title", "body"))
    assert [example.text for example in data.parts["train"]] == ["b", "a b"]
    with pytest.raises(InputError, match=r"f.jsonl:1: title None is not allowed"):
        _read(tmp_path, "f.jsonl", lines, text="title")


def test_a_number_is_no_class_whose_names_are_the_labels_of_train(tmp_path: Path) -> None:
    """SNLI's numbers are in another order than its names in the alphabet: 0 is entailment."""
    (tmp_path / "dev.jsonl").write_text(_jsonl_of(0))
    names = _jsonl_of("neutral", "entailment", "contradiction")
    with pytest.raises(InputError, match=r"dev.jsonl:1: label '0' is not allowed; expected one of contradiction, "):
        _read(tmp_path, "f.jsonl", names, dev="dev.jsonl")
    order = ("entailment", "neutral", "contradiction")
    data = _read(tmp_path, "f.jsonl", names, dev="dev.jsonl", classes=order)
    assert [example.label for part in data.parts.values() for example in part] == [1, 0, 2, 0]


def test_whole_numbers_with_a_point_are_whole_numbers(tmp_path: Path) -> None:
    pd.DataFrame({"text": ["a", "b", "c"], "label": [1.0, 0.0, 10.0]}).to_parquet(tmp_path / "f.parquet")
    assert _read(tmp_path, "f.parquet").classes == ("0", "1", "10")
    (tmp_path / "dev.tsv").write_text("text\tlabel\na\t1.0\n")
    data = _read(tmp_path, "f.tsv", "text\tlabel\na\t1\nb\t0\n", dev="dev.tsv")
    assert (data.classes, data.parts["dev"][0].label) == (("0", "1"), 1)
    data = _read(tmp_path, "f.tsv", "text\tlabel\na\t1.0\nb\t1.5\n", classes=("1.5", "1.0"))
    assert [example.label for example in data.parts["train"]] == [1, 0]


def test_a_column_with_a_point_in_its_name_is_read_beside_a_structure_that_has_the_same_path(tmp_path: Path) -> None:
    rows = {"s.text": ["good", "bad"], "s": [{"text": 1}, {"text": 2}], "label": ["1", "0"]}
    pd.DataFrame(rows).to_parquet(tmp_path / "f.parquet")
    data = _read(tmp_path, "f.parquet", text="s.text")
    assert [(example.text, example.label) for example in data.parts["train"]] == [("good", 1), ("bad", 0)]


def test_a_column_named_like_one_of_lists_is_refused(tmp_path: Path) -> None:
    rows = pa.table([["a", "b"], [[1], [2]], ["0", "1"]], ["text", "text", "label"])
    pq.write_table(rows, tmp_path / "f.parquet")
    with pytest.raises(InputError, match=r"f\.parquet: the column 'text' occurs twice$"):
        _read(tmp_path, "f.parquet")


def test_a_split_by_row_divides_texts_that_one_by_text_keeps_together(tmp_path: Path) -> None:
    words, ends = "film book song walk talk day night week war meal".split(), ("", " and loud", " and loud and good")
    texts = [(f"the {word} was long{end}", number % 2) for number, word in enumerate(words) for end in ends]
    rows = "".join(json.dumps({"text": text, "label": label}) + "\n" for text, label in texts)
    settings = {"dev": None, "split": 0.8}
    parts = [_read(tmp_path, "f.jsonl", rows, **settings, split_seed=seed).parts for seed in (1, 1, 2)]
    assert parts[0] == parts[1] != parts[2]
    data = [_read(tmp_path, "f.jsonl", rows, **settings, split_by=by) for by in ("text", "row")]
    by_text, by_row = map(examples_card, data)
    assert by_text["parts"]["dev"]["examples"] == by_row["parts"]["dev"]["examples"] == 6
    assert by_text["given_away"] == {"dev": 0}
    assert by_row["given_away"]["dev"] > 3


def test_the_first_of_many_classes_are_named(tmp_path: Path) -> None:
    rows = "".join(json.dumps({"text": f"text {n}", "label": f"class {n:02}"}) + "\n" for n in range(13))
    (tmp_path / "dev.jsonl").write_text('{"text": "a", "label": "other"}\n')
    said = r"'other' is not allowed; expected one of class 00, .*, class 09 and 3 more; is this the column of labels\?$"
    with pytest.raises(InputError, match=said):
        _read(tmp_path, "f.jsonl", rows, dev="dev.jsonl")


@pytest.mark.parametrize(
    ("name", "content", "settings", "place", "named"),
    [
        ("f.csv", "Text,label\n\na,1\n", {}, "f.csv:3: no column 'text'; the columns are: Text, label", "text"),
        ("f.tsv", "text\ty\na\t1\n", {}, "f.tsv:2: no column 'label'; the columns are: text, y", "label"),
        ("f.jsonl", '{"text": "a", "label": 1}\n{"text": "a", "label": 1, "b": "b"}\n', {"pair": "b"},
         "f.jsonl:1: no column 'b'; the columns are: text, label", "pair"),
    ],
)  # fmt: skip
def test_the_setting_that_names_a_missing_column_is_named(
    tmp_path: Path, name: str, content: str, settings: dict[str, Any], place: str, named: str
) -> None:
    said = f"{place}; the column is set by classification.own.{named} in data/params.yaml"
    with pytest.raises(InputError, match=f"{re.escape(said)}$"):
        _read(tmp_path, name, content, **settings)


def test_what_to_fetch_and_where_to_put_it_is_said(tmp_path: Path) -> None:
    folder, site = str(tmp_path / "own"), "https://example.org"
    settings = ClassificationSettings(folder=folder, train="a.xml", dev="b.xml", published=site)
    wanted = f"put a.xml, b.xml into {folder}, published at {site}"
    for missing in (f"'{folder}' is not a folder", f"{folder}/a.xml: no such file"):
        message = f"data/params.yaml: classification.own: {missing}; {wanted}"
        with pytest.raises(InputError, match=f"^{re.escape(message)}$"):
            check_files(settings, "classification.own")
        (tmp_path / "own").mkdir(exist_ok=True)
    (tmp_path / "own/a.xml").mkdir()
    with pytest.raises(InputError, match=re.escape(f"{folder}/a.xml: it is a folder; expected a file; {wanted}")):
        check_files(settings, "classification.own")


@pytest.mark.parametrize(
    ("labels", "settings", "message"),
    [
        ("xyz", {"classes": ("x", "y")}, "f.jsonl:3: label 'z' is not allowed; expected one of x, y"),
        (("bar", "e\u0301te\u0301"), {"classes": ("bar", "\xe9t\xe9")},
         "f.jsonl:2: label 'e\u0301te\u0301' is not allowed; expected "
         "one of bar, \xe9t\xe9; it is 'e\\u0301te\\u0301', which looks like '\\xe9t\\xe9'"),
        (("bar", "\xe9t\xe9", "e\u0301t\xe9"), {},
         "f.jsonl:3: label 'e\\u0301t\\xe9' is not allowed; expected '\\xe9t\\xe9', which looks the same"),
        ("xyz", {"dev": "dev.jsonl"}, "dev.jsonl:2: label 'new' is not allowed; expected one of x, y, z"),
        ("xyz", {"drop": ("w",)}, "data/params.yaml: classification.own.drop: no row has the label 'w'"),
        ("xyz", {"drop": ("x", "y", "z")}, "f.jsonl: it contains no example"),
        ("xyz", {"dev": None, "split": 0.9}, "f.jsonl: too few rows for a split at 0.9: 3"),
        ((1.0, 0.0), {"classes": ("1.0", "0.0")}, "f.jsonl:1: label '1' is not allowed; expected one of 1.0, 0.0"),
        ((-1, 1), {"classes": ("no", "yes")}, "f.jsonl:1: label '-1' is not allowed; expected one of no, yes"),
        ("1234", {"classes": tuple("abcde")}, "data/params.yaml: classification.own.classes: labels from 1 to 4 do not "
         "tell whether the first of 5 classes is 0 or 1; expected a row labelled 0 or 5, or names as labels"),
    ],
)  # fmt: skip
def test_settings_that_the_rows_do_not_fit(tmp_path: Path, labels, settings, message: str) -> None:
    (tmp_path / "dev.jsonl").write_text(_jsonl_of("x", "new"))
    with pytest.raises(InputError, match=f"{re.escape(message)}$"):
        _read(tmp_path, "f.jsonl", _jsonl_of(*labels), **settings)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"dev": None, "split": 1}, "own.split: 1 is not allowed; expected a number between 0 and 1 or null"),
        ({"folder": "mine"}, "own.folder: 'mine' is not allowed; expected a folder in data/own, the only one that DVC"),
        ({"folder": "data/own/../x"}, "own.folder: 'data/own/../x' is not allowed; expected a folder in data/own, the"),
        ({"text": []}, "own.text: [] is not allowed; expected a string or a list of 1 or more names"),
        ({"classes": ["a"]}, "own.classes: ['a'] is not allowed; expected two or more, each once"),
        ({"classes": ["a", "a", "b"]}, "own.classes: ['a', 'a', 'b'] is not allowed; expected two or more, each once"),
        ({"classes": ["a", "b"], "drop": ["b"]}, "own.drop: ['b'] is not allowed; 'b' is one of classes"),
        ({"test": "/t.csv"}, "own.test: '/t.csv' is not allowed; expected a file in the folder"),
        ({"dev": None}, "own.split: null is not allowed; expected either dev or split"),
        ({"split": 0.8}, "own.split: 0.8 is not allowed; expected either dev or split"),
        ({"dev": "../d.csv"}, "own.dev: '../d.csv' is not allowed; expected a file in the folder"),
        (
            {"test": "t.csv", "dev": None, "split": 0.8},
            "own.test: 't.csv' is not allowed; expected a split other than t.csv",
        ),
        ({"column": "x"}, "own.column: unknown key; allowed: train, dev, test, split, split_seed, split_by, text"),
    ],
)
def test_an_entry_is_checked(change, message: str) -> None:
    right = {"folder": "data/own/f", "train": "t.csv", "dev": "d.csv"}
    for folder in ("data/own/f", "/anywhere"):
        ClassificationParams.read({"classification": {"own": right | {"folder": folder}}}, key="own")
    with pytest.raises(InputError, match=f"^{re.escape(f'data/params.yaml: classification.{message}')}"):
        ClassificationParams.read({"classification": {"own": right | change}}, key="own")


@pytest.mark.parametrize(
    "name", ["sst2", "pretrain", "tokens", "tasks", "review", "run", "Own", "a.b", "a/b", "", "own-test"]
)
def test_names_that_a_task_may_not_have(name: str) -> None:
    with pytest.raises(InputError, match="the name is not allowed; expected a-z"):
        ClassificationParams.read({"classification": {name: {}}}, key=name)


@given(st.integers(2, 40), st.floats(0.05, 0.95), st.integers(0, 9))
def test_a_split_keeps_every_item_once_and_in_order(size: int, share: float, seed: int) -> None:
    count = round(share * size)
    if count in (0, size):
        with pytest.raises(InputError, match="too few rows for a split"):
            held_out_split(range(size), share, seed, "f")
        return
    kept, held = held_out_split(range(size), share, seed, "f")
    assert sorted(kept + held) == list(range(size))
    assert (kept, held, len(kept)) == (sorted(kept), sorted(held), count)


@given(st.lists(st.tuples(st.text(), st.none() | st.text(), st.integers(0, 1)), min_size=1))
def test_what_is_written_is_read_again(tmp_path_factory: pytest.TempPathFactory, rows) -> None:
    data, examples = tmp_path_factory.mktemp("data"), [Example(*row) for row in rows]
    write_task(data, TaskData(("naïve", "b"), {"train": examples}))
    assert read_classes(data) == ("naïve", "b")
    assert read_examples(data, "train") == examples


def test_a_task_that_was_not_read(tmp_path: Path) -> None:
    with pytest.raises(
        InputError, match=r"own/classes\.json: no such file; run dvc repro; data/params\.yaml defines every task but"
    ):
        read_classes(tmp_path / "own")


def test_a_value_that_python_cannot_hold_is_named(tmp_path: Path) -> None:
    """A date after the year 9999, in the second row."""
    times = pa.array([datetime(2026, 1, 1), None], pa.timestamp("s"))
    far = pa.concat_arrays([times[:1], pa.array([10**12], pa.int64()).cast(pa.timestamp("s"))])
    pq.write_table(pa.table({"text": ["a", "b"], "label": far}), tmp_path / "f.parquet")
    with pytest.raises(InputError, match=r"f\.parquet: row 2: label: [^\n]+$"):
        _read(tmp_path, "f.parquet")
