"""What is wrong with a user's files and settings: one line, exit code 2, nothing half-written."""

import json
import re
import sys

import pytest

from retrace.core.files import read_json, write_text
from retrace.datasets.examples import Example, read_examples
from retrace.datasets.source import Source
from retrace.datasets.squad import read_questions
from tests.toy import Project

QUESTION = {"id": "q", "question": "Who?", "answers": [{"text": "Ada", "answer_start": 0}]}
SQUAD = {"data": [{"title": "T", "paragraphs": [{"context": "Ada did.", "qas": [QUESTION]}]}]}
MISPLACED = json.dumps(SQUAD).replace('"answer_start": 0', '"answer_start": 2').encode()

# A file size limit stands in for the full disk: a write fails half-way.
LIMITED = """
import resource, runpy, signal
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, ({size}, {size}))
runpy.run_module("stages.{module}", run_name="__main__")
"""

# Limits the address space to this many bytes more than the imports take.
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
    own = project.folder / "data/own"
    project.set_all({"data": "files", "files.text": "data/own/text"})
    for part in ("train", "valid", "test"):
        write_text(own / f"text/wiki.{part}.tokens", " \n = Ada = \n \n Ada did it . \n")
    for part in ("train", "dev"):
        write_text(own / f"sst2/{part}.tsv", f"sentence\tlabel\ngood {part}\t1\nbad {part}\t0\n")
        write_text(own / f"squad/{part}-v2.0.json", json.dumps(SQUAD))
    return project


def test_right_files_are_checked_and_copied(files: Project) -> None:
    """Plain text and version 1 of SQuAD too, whose entries lack some keys."""
    own, elsewhere = files.folder / "data/own", files.folder.parent / "another disk"
    (own / "text").rename(elsewhere)
    (own / "text").symlink_to(elsewhere)
    for part in ("train", "valid", "test"):
        (elsewhere / f"wiki.{part}.tokens").unlink()
        (elsewhere / f"{part}.txt").write_text(f"One paragraph.\n\nAnother one of {part}.\n")
    done = files.stage("sources.files")
    assert "text: 1 of 2 documents of valid are in train too" in done.stdout
    assert "squad: 1 of 1 questions of dev are in train too" in done.stdout
    text, sst2 = (read_json(files.folder / name / "card.json") for name in ("data/text", "data/classification/sst2"))
    assert sst2["parts"]["train"] == {"examples": 2, "classes": {"negative": 1, "positive": 1}}
    assert text["parts"]["train"] == {"documents": 2, "words": 6, "unknown_words": 0}


def test_train_is_split_where_there_is_no_dev(files: Project) -> None:
    own, source = files.folder / "data/own", Source.within(files.folder / "data")
    rows = [Example(f"sentence {i}", None, i % 2) for i in range(20)]
    (own / "sst2/train.tsv").write_text("sentence\tlabel\n" + "".join(f"{row.text}\t{row.label}\n" for row in rows))
    asked = [[{**QUESTION, "id": f"{i}-{j}"} for j in range(5)] for i in range(4)]
    passages = [{"context": f"Ada did {i}.", "qas": qas} for i, qas in enumerate(asked)]
    (own / "squad/train-v2.0.json").write_text(json.dumps({"version": "v2.0", "data": [{"paragraphs": passages}]}))
    for name in ("sst2/dev.tsv", "squad/dev-v2.0.json"):
        (own / name).unlink()
    files.set_all(
        {f"files.{task}.{key}": of for task in ("sst2", "squad") for key, of in (("dev", None), ("split", 0.8))}
    )
    said = files.stage("sources.files").stdout
    assert not [line for line in said.splitlines() if "in train too" in line and not line.startswith("text: ")]
    train, dev = (read_examples(source.sst2, part) for part in ("train", "dev"))
    assert (len(train), len(dev), {*train, *dev}) == (16, 4, set(rows))
    train, held = ([of.id for of in read_questions(source.squad / f"{part}.json")] for part in ("train", "dev"))
    assert (len(train), len(held), len({*train, *held})) == (15, 5, 20)  # five on each passage
    write_text(own / "sst2/held.tsv", "sentence\tlabel\nheld out\t1\n")
    files.set_all({"files.sst2.split_seed": 2, "files.sst2.test": "held.tsv"})
    files.stage("sources.files")
    assert read_examples(source.sst2, "dev") != dev
    assert read_examples(source.sst2, "test") == [Example("held out", None, 1)]


HALVED = {"files.sst2.dev": None, "files.sst2.split": 0.5}
FINETUNE = "finetune_sst2 --seed 1 --method"
OUTPUTS = (
    "data/text", "data/classification/sst2", "data/classification/topics", "data/question_answering/squad",
    "models/tokenizer", "models/sst2",
)  # fmt: skip
TOPICS = {"classification": {"topics": {"folder": "data/own/gone", "train": "t.csv", "split": 0.8}}}
GONE = "'data/own/gone' is not a folder; put"


@pytest.mark.parametrize(
    ("stage", "settings", "file", "content", "message"),
    [
        ("sources.files", {}, "text/wiki.valid.tokens", None,
         "data/params.yaml: files.text: data/own/text/wiki.valid.tokens: no such file; put wiki.train.tokens, "
         "wiki.valid.tokens, wiki.test.tokens into data/own/text"),
        ("sources.files", {}, "squad/train-v2.0.json", MISPLACED,
         "data/own/squad/train-v2.0.json: question q: the answer 'Ada' is not at character 2"),
        ("sources.files", HALVED, "sst2/train.tsv", b"sentence\tlabel\na\t1\n\nb\t0\nc\t3\n",
         "data/own/sst2/train.tsv:5: label '3' is not allowed; expected 0 or 1"),
        ("sources.files", {"files.sst2.folder": "data/own/gone"}, "", None,
         f"data/params.yaml: files.sst2: {GONE} train.tsv, dev.tsv into data/own/gone"),
        ("tokenize", {"tokenizer.vocab_size": "many"}, "", None,
         "params.yaml: tokenizer.vocab_size: 'many' is not allowed; expected a whole number from 6 to 16777215"),
        ("sources.task classification --task topics", TOPICS, "", None,
         f"data/params.yaml: classification.topics: {GONE} t.csv into data/own/gone"),
        (f"{FINETUNE} full --task other", TOPICS, "", None, "params.yaml: other is missing; top level has: data"),
        (f"{FINETUNE} half", {}, "", None, "params.yaml: methods.half is missing; methods has: full, scratch"),
    ],
)  # fmt: skip
def test_what_is_wrong_is_one_line(files: Project, stage: str, settings, file: str, content, message: str) -> None:
    """And nothing is written. tests/campaigns has more wrong files and settings."""
    files.set_all(settings)
    target = files.folder / "data/own" / file
    if content is not None:
        target.write_bytes(content)
    elif file:
        target.unlink()
    done = files.stage(*stage.split(), code=2)
    assert done.stderr.startswith(f"error: {message}")
    assert done.stderr.count("\n") == 1
    assert not any((files.folder / output).exists() for output in OUTPUTS)
    assert not list(files.folder.rglob(".*.partial"))


def test_a_full_disk_leaves_nothing(project: Project) -> None:
    project.stage("sources.model")
    for module, size, output in (
        ("sources.sample", 50_000, "data/text"),
        ("tokenize", 10_000, "models/tokens"),
        ("pretrain", 50_000, "models/pretrained"),
    ):
        done = project.run(sys.executable, "-c", LIMITED.format(size=size, module=module), code=2)
        assert re.fullmatch(r"error: .*File too large.*\n", done.stderr)
        assert not (project.folder / output).exists()
        assert not (project.folder / "data/question_answering/squad").exists() or module != "sources.sample"
        assert not list((project.folder / output).parent.glob(".*"))
        project.stage(module)


def test_short_memory_is_one_line_whose_advice_helps(ready: Project) -> None:
    ready.set_all({"pretrain.batch_size": 256, "pretrain.max_tokens": 1, "model.intermediate_size": 4096})
    limited = (sys.executable, "-c", SHORT_OF_MEMORY.format(room=500 * 2**20))
    done = ready.run(*limited, code=2)
    assert re.fullmatch(
        r"error: pretrain: out of memory; .* could not be allocated; planned: .*; to use less, set "
        r"RETRACE_MICRO_BATCH=N, .*_CHECKPOINTING=true\n",
        done.stderr,
    )
    assert not (ready.folder / "models/pretrained").exists()
    ready.with_variables(RETRACE_MICRO_BATCH="4").run(*limited)
    assert (ready.folder / "models/pretrained").is_dir()
