"""What the local hub serves for the studies' small runs, and the stages that read it."""

import os
import subprocess
import sys
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import yaml

from retrace.cli.settings import write_presets
from retrace.core.paths import questions_path, sentences_path
from retrace.datasets.examples import read_classes, read_examples, read_sentences
from retrace.datasets.squad import read_questions
from retrace.files.settings import ClassificationParams
from retrace.files.tasks import read_files
from retrace.tokens.tokenizer import load_tokenizer
from tests.hub import LocalHub
from tests.hub.content.small import PASSAGE, SHARED, Small, cut_down, small_data
from tests.hub.content.stand_in import write_stand_in
from tests.hub.content.studies import SCIBERT, TOPICS, add_study, fill_folders
from tests.toy import ROOT, Project

NAMES = ("Salesforce/wikitext", "nyu-mll/glue", "rajpurkar/squad", "org/headlines", "org/bert", SCIBERT, "org/llama")
TEXT, SENTENCES, QUESTIONS, NEWS, BERT, SCIENCE, LLAMA = (
    f"{name}@{number:040x}" for number, name in enumerate(NAMES, start=1)
)
HUB = {
    "text": {"repository": TEXT, "config": "wikitext-2-raw-v1"},
    "sst2": {"repository": SENTENCES, "config": "sst2"},
    "squad": {"repository": QUESTIONS, "config": "plain_text"},
    "classification": {
        "headlines": {
            "repository": NEWS, "config": "first", "train": "train[:50%]", "dev": None, "split": 0.8,
            "text": ["title", "body"], "label": "topic",
        }
    },
}  # fmt: skip
OWN = {
    "citations": {"folder": "data/own/acl-arc", "train": "train.jsonl", "dev": "test.jsonl"},
    "restaurants": {
        "folder": "data/own/semeval14-restaurants", "train": "Restaurants_Train.xml", "pair": "term",
        "dev": "Restaurants_Test_Gold.xml", "label": "polarity", "drop": ["conflict"],
    },
}  # fmt: skip


@pytest.fixture(scope="module")
def stand_in(tmp_path_factory: pytest.TempPathFactory) -> Small:
    folder = tmp_path_factory.mktemp("stand-in")
    write_stand_in(folder)
    return cut_down(folder)


def _study(folder: Path, **params: Any) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "params.yaml").write_text(yaml.safe_dump(params))
    return folder


def _assert_enough(small: Small) -> None:
    """What a study's small run takes: every class, questions of both kinds, passages that are short."""
    assert [len(small.sentences[part]) for part in ("train", "dev")] == [600, 300]
    assert all(question.answers for question in small.answerable["train"] + small.answerable["dev"])
    assert [len(small.questions[part]) for part in ("train", "dev")] == [480, 200]
    for part, least in (("train", 0.15), ("dev", 0.3)):
        unanswerable = [question for question in small.questions[part] if not question.answers]
        assert least < len(unanswerable) / len(small.questions[part]) < 0.34
    asked = [question for kind in (small.answerable, small.questions) for part in kind.values() for question in part]
    assert max(len(question.context.split()) for question in asked) <= PASSAGE
    for part in ("train", "test"):
        assert min(Counter(row["label"] for row in small.news[part]).values()) >= 10
        assert len({row["label"] for row in small.news[part]}) == 4


def test_the_stand_ins_are_enough_for_every_study(stand_in: Small) -> None:
    _assert_enough(stand_in)


@pytest.mark.skipif(not SHARED.is_dir(), reason="the published data sets are not beside this checkout")
def test_the_published_data_is_enough_for_every_study() -> None:
    _assert_enough(small_data())


def test_the_stages_read_what_a_study_pins(project: Project, hub: LocalHub, tmp_path: Path) -> None:
    named = {"one": {"family": "bert", "checkpoint": BERT}, "science": {"family": "bert", "checkpoint": SCIENCE}}
    settings = {"family": "llama", "model": {"checkpoint": LLAMA},
                "data/params.yaml": {"hub": HUB, "checkpoints": named}}  # fmt: skip
    study = _study(project.folder / "studies/pins", **settings)
    write_presets([study / "params.yaml"], project.folder)
    pins = add_study(hub, study)
    assert pins == [TEXT, SENTENCES, QUESTIONS, NEWS, BERT, SCIENCE, LLAMA]
    assert add_study(hub, study) == pins
    assert len(hub.commits("model", SCIBERT)) == 2  # the first is empty; putting it up again added none

    user = replace(project, variables=hub.environment(tmp_path / "home"))
    for stage in (["hub"], ["hub_classification", "--task", "headlines"], ["model"], ["model", "--name", "science"]):
        user.stage(f"sources.{stage[0]}", *stage[1:])
    source, small = project.folder / "data" / "hub", small_data()
    assert len(read_sentences(sentences_path(source, "train"))) == len(small.sentences["train"])
    assert {question.id for question in read_questions(questions_path(source, "dev"))} == {
        question.id for question in small.answerable["dev"]
    }
    assert read_classes(source, "headlines") == TOPICS
    kept = round(len(small.news["train"]) / 2)
    assert sum(len(read_examples(source, "headlines", part)) for part in ("train", "dev")) == kept
    science = load_tokenizer(project.folder / "data" / "checkpoints" / "science")
    assert science.get_vocab() != load_tokenizer(project.folder / "data" / "model").get_vocab()


def test_own_files_are_made_where_there_are_none(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    study = _study(tmp_path / "studies/study", classification=OWN)
    mine = tmp_path / "data/own/acl-arc/test.jsonl"
    mine.parent.mkdir(parents=True)
    mine.write_text('{"text": "mine", "label": "Uses"}\n')
    written = fill_folders(study)
    assert [path.name for path in written] == ["train.jsonl", "Restaurants_Train.xml", "Restaurants_Test_Gold.xml"]
    assert fill_folders(study) == []
    monkeypatch.chdir(tmp_path)
    params = {"classification": OWN}
    citations = read_files(ClassificationParams.read(params, key="citations").task, "classification.citations")
    assert [example.text for example in citations.parts["dev"]] == ["mine"]
    assert len(citations.classes) == 6
    restaurants = read_files(ClassificationParams.read(params, key="restaurants").task, "classification.restaurants")
    assert restaurants.classes == ("negative", "neutral", "positive")
    assert min(len(restaurants.parts[part]) for part in ("train", "dev")) >= 100
    assert restaurants.dropped > 0


def test_the_hub_and_a_study_by_hand(tmp_path: Path) -> None:
    study = _study(
        tmp_path / "studies/study", classification=OWN, checkpoints={"one": {"family": "bert", "checkpoint": SCIENCE}}
    )
    own = tmp_path / "hub/models/org/own"
    own.mkdir(parents=True)
    (own / "a.txt").write_text("text")
    done = subprocess.run(
        [sys.executable, "-m", "tests.hub", tmp_path / "hub", "--study", study, "--seconds", "0"],
        cwd=ROOT, env=dict(os.environ), capture_output=True, text=True, timeout=120, check=True,
    )  # fmt: skip
    pin_of_own, pin, *written, setting = done.stdout.splitlines()
    assert pin_of_own.startswith("org/own@")
    assert pin == SCIENCE
    assert len(written) == 4
    assert setting.startswith("export HF_ENDPOINT=http://127.0.0.1:")
    assert setting.endswith(f"HF_HOME={tmp_path / 'hub' / 'home'}")
