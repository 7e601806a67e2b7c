"""The user's own SST-2 and SQuAD: which files become which split."""

import re
from pathlib import Path
from typing import Any

import pytest

from retrace.core.errors import InputError
from retrace.core.paths import questions_path
from retrace.datasets.examples import Example, read_sentences
from retrace.datasets.source import Source
from retrace.datasets.text import PARTS, Table, text_path
from retrace.files.settings import FilesSettings, check_text
from retrace.hub.settings import HubSentences
from stages.sources.hub import sentences_of

HUB = HubSentences(repository=f"org/name@{'0' * 40}")
TASKS = {name: {"folder": f"data/own/{name}", "train": "train", "dev": "dev"} for name in ("sst2", "squad")}


@pytest.mark.parametrize(
    ("named", "expected"),
    [
        ({}, {"train": "train", "dev": "dev"}),
        ({"test": "held"}, {"train": "train", "dev": "dev", "test": "held"}),
        ({"dev": None, "split": 0.8}, {"train": "train"}),  # the rest of train is dev
        ({"dev": None, "split": 0.8, "test": "dev"}, {"train": "train", "test": "dev"}),
    ],
)
def test_every_named_file_is_copied_as_its_split(named: dict[str, Any], expected: dict[str, str]) -> None:
    settings: Any = {"text": "data/own/text"} | TASKS | {"squad": TASKS["squad"] | named}
    source = Source.within(Path("to"))
    found = FilesSettings(**settings).copies(source)
    paths = {part: questions_path(source.squad, part) for part in ("train", "dev", "test")}
    parts = {part: found[path] for part, path in paths.items() if path in found}
    assert parts == {part: Path("data/own/squad") / name for part, name in expected.items()}


TOKENS, PLAIN = "wiki.train.tokens, wiki.valid.tokens, wiki.test.tokens", "train.txt, valid.txt, test.txt"


@pytest.mark.usefixtures("here")
@pytest.mark.parametrize(
    ("there", "said"),
    [
        (("train.txt", "test.txt"), f"data/own/text/valid.txt: no such file; put {PLAIN} into data/own/text"),
        (("wiki.test.tokens",), f"data/own/text/wiki.train.tokens: no such file; put {TOKENS} into data/own/text"),
        ((), f"data/own/text/wiki.train.tokens: no such file; put {TOKENS} or {PLAIN} into data/own/text"),
        (None, f"'data/own/text' is not a folder; put {TOKENS} or {PLAIN} into data/own/text"),
        (("train.txt", "valid.txt", "test.txt", "wiki.valid.tokens"),
         "data/own/text has both wiki.valid.tokens and train.txt; expected files of one kind"),
    ],
)  # fmt: skip
def test_running_text_is_in_files_of_one_kind(there: tuple[str, ...] | None, said: str) -> None:
    settings: Any = {"text": "data/own/text"} | TASKS
    if there is not None:
        Path("data/own/text").mkdir(parents=True)
    for name in there or ():
        Path("data/own/text", name).touch()
    with pytest.raises(InputError, match=f"^{re.escape(f'data/params.yaml: files.text: {said}')}$"):
        check_text(FilesSettings(**settings))


@pytest.mark.usefixtures("here")
def test_plain_text_is_copied_under_the_names_of_wikitext() -> None:
    settings: Any = {"text": "data/own/text"} | TASKS
    Path("data/own/text").mkdir(parents=True)
    for part in PARTS:
        Path(f"data/own/text/{part}.txt").touch()
    files = FilesSettings(**settings)
    check_text(files)
    source = Source.within(Path("to"))
    copies = files.copies(source)
    assert [copies[text_path(source.text, part)].name for part in PARTS] == PLAIN.split(", ")


def test_a_test_set_without_labels_is_refused_in_one_line(tmp_path: Path) -> None:
    path = tmp_path / "test.tsv"
    path.write_text("index\tsentence\n0\tgood\n")
    with pytest.raises(InputError, match=r"no column 'label'.*; GLUE publishes its test set without labels, so it"):
        read_sentences(path)
    rows = Table("glue test", [("glue test: row 1", {"sentence": "good", "label": -1})])
    with pytest.raises(InputError, match="glue test: row 1: label -1 is not allowed; expected 0 or 1; GLUE publishes"):
        sentences_of(rows, HUB)


def test_a_label_of_true_or_false_is_no_class_number() -> None:
    """Python takes True for 1, but a data set does not say which of the two classes it means by True."""
    for label in (True, False):
        rows = Table("f", [("f: row 1", {"sentence": "good", "label": label})])
        with pytest.raises(InputError, match=rf"^f: row 1: label {label} is not allowed; expected 0 or 1$"):
            sentences_of(rows, HUB)


def test_a_data_set_whose_first_class_is_the_positive_one_is_refused() -> None:
    """Every prediction would have the name of the other class, and the accuracy would not show it."""
    rows = [("f: row 1", {"sentence": "good", "label": 0})]
    with pytest.raises(InputError, match=r"^f: label: its classes are Positive, Negative; expected negative, "):
        sentences_of(Table("f", rows, {"label": ("Positive", "Negative")}), HUB)
    assert sentences_of(Table("f", rows, {"label": ("neg", "pos")}), HUB) == [Example("good", None, 0)]


def test_sentences_of_the_hub_are_one_line_each_and_none_is_empty() -> None:
    """White space, a NUL among it, is read as spaces."""
    rows = [("f: row 1", {"sentence": " good\n\x00 film\t", "label": 1})]
    assert sentences_of(Table("f", rows), HUB) == [Example("good film", None, 1)]
    with pytest.raises(InputError, match=r"^f: row 2: the sentence is empty$"):
        sentences_of(Table("f", [*rows, ("f: row 2", {"sentence": " \x00", "label": 0})]), HUB)
    with pytest.raises(InputError, match=r"^f: row 1: no column 'label'; the columns are: sentence, stars$"):
        sentences_of(Table("f", [("f: row 1", {"sentence": "good", "stars": 5})]), HUB)
    with pytest.raises(InputError, match=r"^f: it contains no example$"):
        sentences_of(Table("f", []), HUB)
