"""Which models the page asks, and for what; tests/integration/test_demo.py has its server."""

import re
import shutil
from pathlib import Path

import pytest

from retrace.core.errors import InputError
from retrace.datasets.examples import Example, TaskData, write_task
from retrace.serving.demo import Demo
from tests.tiny import fine_tune, tiny_pretrained, tiny_questions, tiny_sentences
from tests.toy import copy_settings


def test_a_task_of_two_texts_is_asked_where_there_are_two(here: Path) -> None:
    """Reviews and pairs of texts, each with a model that was trained for one epoch."""
    project = copy_settings(here)
    settings = {**project.params()["sst2"], "epochs": 1, "max_length": 32}
    grid = {"finetune.squad_methods": [], "finetune.tasks": ["sst2", "pairs"]}
    project.set_all({**grid, "precision": "fp32", "sst2": settings, "pairs": settings})
    tiny_pretrained(Path("models/pretrained"))
    lines = ["the ale was stale\t0", "the songs were charming\t1"]
    tiny_sentences(Path("data"), lines)
    rows = [Example("the ale", "the hall", 0), Example("the songs", "the songs", 1)]
    write_task(Path("data/classification/pairs"), TaskData(("other", "same"), {"train": rows, "dev": rows}))
    for task in ("sst2", "pairs"):
        fine_tune(task, 1)
    demo = Demo(params := project.params())
    assert [cell.title for cell in demo.cells] == ["sst2 full 1", "pairs full 1"]
    for pair, asked in (("", ["Reviews"]), ("the hall", ["Reviews", "pairs"])):
        page = demo.page("text", {"text": "the ale", "pair": pair})
        assert re.findall("<h3>(.+)</h3>", page) == asked
    shutil.rmtree("models/sst2")
    page = Demo(params).page("text", {"text": "the ale", "pair": ""})
    assert "Reviews by Full (models/sst2/full/1)" in page
    assert "No model answered" in page
    shutil.rmtree("models")
    with pytest.raises(InputError, match="no trained models here; run dvc repro"):
        Demo(params)


def test_the_page_says_that_generated_answers_are_from_one_part_of_a_passage(here: Path) -> None:
    project = copy_settings(here)
    reading = {"epochs": 1, "batch_size": 4, "max_length": 64, "max_answer_length": 8, "answers": "generative"}
    changes = {f"squad.{name}": value for name, value in reading.items()}
    project.set_all({**changes, "finetune.tasks": [], "precision": "fp32"})
    tiny_pretrained(Path("models/pretrained"), "llama")
    tiny_questions(Path("data"), "The guild was founded by Ada Lund.", {"who founded the guild?": "Ada Lund"})
    fine_tune("squad", 1)
    page = Demo(project.params()).page()
    assert "only the part that shares the most words with the question is read" in page
    assert "tokens at a time" not in page
