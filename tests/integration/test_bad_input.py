"""What is wrong with a user's files and settings: one line, exit code 2, nothing half-written."""

import json
import re
import sys

import pytest

from retrace.datasets.squad import read_questions
from tests.toy import Project

SQUAD = {"data": [{"title": "T", "paragraphs": [{"context": "Ada did.", "qas": [
    {"id": "q", "question": "Who?", "answers": [{"text": "Ada", "answer_start": 0}]}]}]}]}  # fmt: skip
MISPLACED = json.dumps(SQUAD).replace('"answer_start": 0', '"answer_start": 2')

# A file size limit stands in for the full disk: a write fails half-way.
LIMITED = """
import resource, runpy, signal
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, ({size}, {size}))
runpy.run_module("stages.{module}", run_name="__main__")
"""

# So many bytes of address space beside what the imports take.
SHORT_OF_MEMORY = """
import re, resource, runpy
from pathlib import Path
import retrace.pretraining.run, retrace.training.loop
taken = int(re.search(r"VmSize:\\s+(\\d+) kB", Path("/proc/self/status").read_text())[1]) * 1024
resource.setrlimit(resource.RLIMIT_AS, (taken + {room}, resource.RLIM_INFINITY))
runpy.run_module("stages.pretrain", run_name="__main__")
"""


@pytest.fixture
def files(project: Project) -> Project:
    """Right files of the user's own, for `data: files`."""
    own = project.folder / "data" / "own"
    for name in ("text", "sst2", "squad"):
        (own / name).mkdir(parents=True)
    project.set("files.text", "data/own/text")
    for part in ("train", "valid", "test"):
        (own / "text" / f"wiki.{part}.tokens").write_text(" \n = Ada = \n \n Ada did it . \n")
    for part in ("train", "dev"):
        (own / "sst2" / f"{part}.tsv").write_text(f"sentence\tlabel\ngood {part}\t1\nbad {part}\t0\n")
        (own / "squad" / f"{part}-v2.0.json").write_text(json.dumps(SQUAD))
    return project


def _assert_one_line(project: Project, module: str, message: str, output: str) -> None:
    done = project.stage(module, code=2)
    assert done.stderr.splitlines() == [f"error: {message}"]
    assert not (project.folder / output).exists()
    assert not list(project.folder.rglob(".*.partial"))


def test_right_files_are_checked_and_copied(files: Project) -> None:
    own, elsewhere = files.folder / "data/own", files.folder.parent / "another disk"
    (own / "text").rename(elsewhere)
    (own / "text").symlink_to(elsewhere)
    done = files.stage("sources.files")
    assert "squad: 1 of 1 questions of dev are in train too" in done.stdout
    card = json.loads((files.folder / "data/files/card.json").read_text())
    assert card["sst2"]["train"] == {"sentences": 2, "favourable": 1}
    assert card["text"]["valid"]["words"] == 7


def test_plain_text_and_version_1_are_read_too(files: Project) -> None:
    text = files.folder / "data/own/text"
    for part in ("train", "valid", "test"):
        (text / f"wiki.{part}.tokens").unlink()
        (text / f"{part}.txt").write_text("One paragraph.\n\nAnother one.\n")
    files.stage("sources.files")
    card = json.loads((files.folder / "data/files/card.json").read_text())
    assert card["text"]["train"] == {"documents": 2, "words": 4, "unknown_words": 0}


def test_train_is_split_where_there_is_no_dev(files: Project) -> None:
    own = files.folder / "data/own"
    rows = [f"sentence {i}\t{i % 2}\n" for i in range(20)]
    (own / "sst2/train.tsv").write_text("sentence\tlabel\n" + "".join(rows))
    passages = [
        {"context": f"Ada {i} did.", "qas": [
            {"id": f"{i}-{j}", "question": "Who?", "answers": [{"text": "Ada", "answer_start": 0}]} for j in range(5)
        ]} for i in range(4)
    ]  # fmt: skip
    (own / "squad/train-v2.0.json").write_text(json.dumps({"version": "v2.0", "data": [{"paragraphs": passages}]}))
    for name in ("sst2/dev.tsv", "squad/dev-v2.0.json"):
        (own / name).unlink()
    for task in ("sst2", "squad"):
        files.set_all({f"files.{task}.dev": None, f"files.{task}.split": 0.8})
    done = files.stage("sources.files")
    assert "in train too" not in done.stdout
    folder = files.folder / "data/files"
    parts = [(folder / f"sst2/{part}.tsv").read_text().splitlines(keepends=True) for part in ("train", "dev")]
    assert [len(part) for part in parts] == [17, 5]
    assert parts[0][0] == parts[1][0] == "sentence\tlabel\n"
    assert sorted(parts[0][1:] + parts[1][1:]) == sorted(rows)
    asked = [[question.id for question in read_questions(folder / f"squad/{part}.json")] for part in ("train", "dev")]
    assert [len(part) for part in asked] == [15, 5]  # five on each passage
    assert len({*asked[0], *asked[1]}) == 20
    before = {path: path.read_bytes() for path in folder.rglob("*.*")}
    files.stage("sources.files")
    assert before == {path: path.read_bytes() for path in folder.rglob("*.*")}
    files.set("files.sst2.split_seed", 2)
    files.stage("sources.files")
    assert before[folder / "sst2/dev.tsv"] != (folder / "sst2/dev.tsv").read_bytes()


def test_what_is_wrong_before_a_split_has_the_line_of_the_users_file(files: Project) -> None:
    files.set_all({"files.sst2.dev": None, "files.sst2.split": 0.5})
    path = files.folder / "data/own/sst2/train.tsv"
    path.write_text("sentence\tlabel\na\t1\n\nb\t0\nc\t3\n")
    message = "data/own/sst2/train.tsv:5: label '3' is not allowed; expected 0 or 1"
    _assert_one_line(files, "sources.files", message, "data/files")
    path.write_text("sentence\tlabel\na\t1\n")
    message = "data/own/sst2/train.tsv: 1 rows are too few for a split at 0.5"
    _assert_one_line(files, "sources.files", message, "data/files")


@pytest.mark.parametrize(
    ("path", "content", "message"),
    [
        ("text/wiki.valid.tokens", None, "data/own/text/wiki.valid.tokens: no such file"),
        ("text/wiki.train.tokens", b"ok\n\xe9t\xe9\n", ":2:1: byte 0xe9 is not UTF-8; save the file as UTF-8"),
        ("sst2/train.tsv", "sentence\tlabel\na\t2\n", "sst2/train.tsv:2: label '2' is not allowed; expected 0 or 1"),
        ("squad/train-v2.0.json", MISPLACED, "question q: the answer 'Ada' is not at character 2"),
    ],
)
def test_a_wrong_file(files: Project, path: str, content: str | bytes | None, message: str) -> None:
    target = files.folder / "data/own" / path
    if content is None:
        target.unlink()
    else:
        target.write_bytes(content.encode() if isinstance(content, str) else content)
    done = files.stage("sources.files", code=2)
    assert done.stderr.count("\n") == 1
    assert done.stderr.startswith("error: data/own/")
    assert message in done.stderr
    assert not (files.folder / "data/files").exists()
    assert not list(files.folder.rglob(".*.partial"))


def test_a_folder_that_is_not_there(files: Project) -> None:
    files.set("files.sst2.folder", "data/own/gone")
    message = "data/params.yaml: files.sst2: 'data/own/gone' is not a folder; put train.tsv, dev.tsv into data/own/gone"
    _assert_one_line(files, "sources.files", message, "data/files")


@pytest.mark.parametrize(
    ("key", "value", "message"),
    [
        ("vocab_sise", 9, "unknown key; allowed: kind, vocab_size, lowercase, train_on, special"),
        ("vocab_size", "many", "'many' is not allowed; expected a whole number above 5"),
    ],
)
def test_a_wrong_setting(project: Project, key: str, value: object, message: str) -> None:
    project.set(f"tokenizer.{key}", value)
    _assert_one_line(project, "tokenize", f"params.yaml: tokenizer.{key}: {message}", "models/tokenizer")


def test_an_entry_without_its_files(project: Project) -> None:
    project.set("classification", {"own": {"folder": "data/own/topics", "train": "t.csv", "split": 0.8}})
    arguments, output = ("sources.task", "classification", "--task", "own"), project.folder / "data/classification/own"
    for message in (
        "data/params.yaml: classification.own: 'data/own/topics' is not a folder; put t.csv into data/own/topics",
        "data/params.yaml: classification.own: data/own/topics/t.csv: no such file; put t.csv into data/own/topics",
        "data/own/topics/t.csv:2: no column 'text'; the columns are: body, label",
    ):
        assert project.stage(*arguments, code=2).stderr == f"error: {message}\n"
        assert not output.exists()
        folder = project.folder / "data/own/topics"
        if folder.is_dir():
            (folder / "t.csv").write_text("body,label\na,b\n")
        folder.mkdir(parents=True, exist_ok=True)
    done = project.stage("sources.task", "classification", "--task", "other", code=2)
    assert done.stderr == "error: data/params.yaml: classification.other is missing; classification has: own\n"
    done = project.stage("finetune_sst2", "--task", "other", "--method", "full", "--seed", "1", code=2)
    assert done.stderr.startswith("error: params.yaml: other is missing; top level has: data")


def test_an_unknown_method(project: Project) -> None:
    done = project.stage("finetune_sst2", "--method", "half", "--seed", "1", code=2)
    assert done.stderr.startswith("error: ")
    assert done.stderr.count("\n") == 1


def test_a_full_disk_leaves_nothing(project: Project) -> None:
    project.stage("sources.model")
    for module, size, outputs in (
        ("sources.sample", 50_000, ("data", "sample")),
        ("tokenize", 10_000, ("models", "tokens")),
        ("pretrain", 50_000, ("models", "pretrained")),
    ):
        done = project.run(sys.executable, "-c", LIMITED.format(size=size, module=module), code=2)
        assert len(done.stderr.splitlines()) == 1
        assert done.stderr.startswith("error: ")
        assert "File too large" in done.stderr
        assert not project.folder.joinpath(*outputs).exists()
        assert not list((project.folder / outputs[0]).glob(".*"))
        project.stage(module)


def test_short_memory_is_one_line_whose_advice_helps(project: Project) -> None:
    project.set_all({"pretrain.batch_size": 256, "model.intermediate_size": 4096})
    for stage in ("sources.sample", "sources.model", "tokenize"):
        project.stage(stage)
    limited = (sys.executable, "-c", SHORT_OF_MEMORY.format(room=500 * 2**20))
    done = project.run(*limited, code=2)
    assert re.fullmatch(
        r"error: pretrain: out of memory; .* could not be allocated; planned are .*; less is taken with "
        r"RETRACE_MICRO_BATCH=N, .*_CHECKPOINTING=true\n",
        done.stderr,
    )
    assert not (project.folder / "models/pretrained").exists()
    project.with_variables(RETRACE_MICRO_BATCH="4").run(*limited)
    assert (project.folder / "models/pretrained").is_dir()
