"""A task of the user's own from files to predictions, by entries in params.yaml and no code."""

import json

import pytest

from retrace.models.heads import read_config
from retrace.results.predictions import kept_epoch, read_epochs
from tests.tiny import tiny_pretrained
from tests.toy import Project

TERMS = """<sentences><sentence id="1"><text>The ale was stale , the songs were charming .</text><aspectTerms>
<aspectTerm term="ale" polarity="negative"/><aspectTerm term="songs" polarity="positive"/></aspectTerms></sentence>
<sentence id="2"><text>The hall was full , the river doubtful .</text><aspectTerms>
<aspectTerm term="hall" polarity="neutral"/><aspectTerm term="river" polarity="conflict"/></aspectTerms></sentence>
</sentences>"""
ENTRY = {"folder": "data/own/terms", "train": "train.xml", "dev": "dev.xml", "pair": "term", "label": "polarity",
         "drop": ["conflict"]}  # fmt: skip


@pytest.mark.parametrize("family", ["bert", "modernbert"])
def test_three_classes_of_pairs_end_to_end(project: Project, family: str) -> None:
    own = project.folder / "data/own/terms"
    own.mkdir(parents=True)
    for part in ("train", "dev"):
        (own / f"{part}.xml").write_text(TERMS)
    project.set("classification", {"terms": ENTRY})
    project.set("terms", {"lr": 0.001, "epochs": 2, "batch_size": 2, "max_length": 32})
    done = project.stage("sources.classification", "--task", "terms")
    assert done.stdout == "terms: 3 of 3 examples of dev are in train too\n"
    card = json.loads((project.folder / "data/classification/terms/card.json").read_text())
    assert card["parts"]["dev"] == {"examples": 3, "classes": {"negative": 1, "neutral": 1, "positive": 1}}
    assert card["dropped"] == 2

    tiny_pretrained(project.folder / "models/pretrained", family)
    project.stage("finetune_sst2", "--task", "terms", "--method", "full", "--seed", "1")
    epochs = read_epochs(project.folder / "predictions/terms/full/1", "classification")
    assert [epoch.number for epoch in epochs] == [0, 1, 2]
    rows = kept_epoch(epochs).rows
    assert list(rows) == ["id", "label", "logit_0", "logit_1", "logit_2"]
    assert rows["label"].tolist() == [0, 2, 1]
    config = read_config(project.folder / "models/terms/full/1")
    assert config.id2label == {0: "negative", 1: "neutral", 2: "positive"}
    assert (project.folder / "reports/runs/terms/full/1.json").is_file()
