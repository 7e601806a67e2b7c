"""What the local hub serves for the studies' small runs, which test_studies.py runs."""

import subprocess
import sys
from pathlib import Path

import yaml

from retrace.files.settings import ClassificationParams
from retrace.files.tasks import read_files
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
