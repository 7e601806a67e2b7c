"""What the local hub serves for the studies' small runs, which test_studies.py runs."""

import re
import subprocess
import sys
from collections import Counter
from pathlib import Path
from xml.etree import ElementTree

import yaml

from retrace.datasets.examples import SENTIMENTS
from retrace.files.settings import ClassificationParams
from retrace.files.tasks import read_files
from retrace.sample.language import NEGATORS, PRAISE
from tests.hub.content.small import PASSAGE, cut_down
from tests.hub.content.stand_in import write_stand_in
from tests.hub.content.studies import SCIBERT
from tests.toy import ROOT

SCIENCE = f"{SCIBERT}@{6:040x}"
OWN = {
    "citations": {"folder": "data/own/acl-arc", "train": "train.jsonl", "dev": "test.jsonl"},
    "restaurants": {
        "folder": "data/own/semeval14-restaurants", "train": "Restaurants_Train.xml", "pair": "term",
        "dev": "Restaurants_Test_Gold.xml", "label": "polarity", "drop": ["conflict"],
    },
}  # fmt: skip


def test_stand_ins_are_enough_for_every_study(tmp_path: Path) -> None:
    """What a study's small run takes where the published data is not beside this checkout: see test_studies.py."""
    write_stand_in(tmp_path)
    small = cut_down(tmp_path)
    assert [len(small.sentences[part]) for part in ("train", "dev")] == [600, 300]
    assert all(question.answers for question in small.answerable["train"] + small.answerable["dev"])
    assert [len(small.questions[part]) for part in ("train", "dev")] == [480, 200]
    for part, least in (("train", 0.15), ("dev", 0.3)):
        unanswerable = [question for question in small.questions[part] if not question.answers]
        assert least < len(unanswerable) / len(small.questions[part]) < 0.34
    asked = [question for kind in (small.answerable, small.questions) for part in kind.values() for question in part]
    assert max(len(question.context.split()) for question in asked) <= PASSAGE
    for part in ("train", "test"):
        classes = Counter(row["label"] for row in small.news[part])
        assert (len(classes), min(classes.values()) >= 10) == (4, True)


def test_stand_ins_of_restaurants_judge_the_term_at_its_place_as_they_say(tmp_path: Path) -> None:
    write_stand_in(tmp_path)
    seen = Counter[str]()
    for sentence in ElementTree.parse(tmp_path / "semeval14-restaurants/Restaurants_Train.xml").iter("sentence"):
        (term,), text = sentence.iter("aspectTerm"), sentence.findtext("text", "")
        polarity, start = term.get("polarity", ""), int(term.get("from", ""))
        assert text[start : int(term.get("to", ""))] == term.get("term")
        seen[polarity] += 1
        if polarity in SENTIMENTS:
            (said,) = re.findall(r"^\w+ (?:was|were) (.*?)(?: ,| and the|$)", text[start:])
            is_negated = any(said.startswith(f"{negator} ") for negator in NEGATORS)
            assert polarity == SENTIMENTS[(said.split()[-1] in PRAISE) != is_negated], text
    assert seen.keys() == {*SENTIMENTS, "neutral", "conflict"}


def test_a_hub_by_hand_has_what_a_study_pins_and_makes_its_files(tmp_path: Path, monkeypatch) -> None:
    """It makes only those of the user's own files that are missing."""
    study, mine = tmp_path / "studies/study", tmp_path / "data/own/acl-arc/test.jsonl"
    own = tmp_path / "hub/models/org/own"
    for folder in (study, mine.parent, own):
        folder.mkdir(parents=True)
    params = {"classification": OWN, "checkpoints": {"one": {"family": "bert", "checkpoint": SCIENCE}}}
    (study / "params.yaml").write_text(yaml.safe_dump(params))
    mine.write_text('{"text": "mine", "label": "Uses"}\n')
    (own / "a.txt").write_text("text")
    command = [sys.executable, "-m", "tests.hub", tmp_path / "hub", "--study", study, "--seconds", "0"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=120, check=True)
    pin_of_own, pin, *written, setting = done.stdout.splitlines()
    assert pin_of_own.startswith("org/own@")
    assert pin == SCIENCE
    names = [Path(line.partition(":")[0]).name for line in written]
    assert names == ["train.jsonl", "Restaurants_Train.xml", "Restaurants_Test_Gold.xml"]
    assert setting.startswith("export HF_ENDPOINT=http://127.0.0.1:")
    assert setting.endswith(f"HF_HOME={tmp_path / 'hub' / 'home'}")

    monkeypatch.chdir(tmp_path)
    citations, restaurants = (read_files(ClassificationParams.read(params, key=key).task, key) for key in OWN)
    assert [example.text for example in citations.parts["dev"]] == ["mine"]
    assert len(citations.classes) == 6
    assert restaurants.classes == ("negative", "neutral", "positive")
    assert min(len(restaurants.parts[part]) for part in ("train", "dev")) >= 100
    assert restaurants.dropped > 0
