"""What the browser of predictions is given, from the files of a run of three examples, by hand."""

import base64
import json
import math
import zlib
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from retrace.core.files import write_json
from retrace.core.paths import QUESTIONS, TASKS
from retrace.datasets.examples import Example, TaskData, write_task
from retrace.datasets.squad import Answer, Question
from retrace.evaluation.metrics.squad_v2 import compare
from retrace.evaluation.records import Details
from retrace.report.blocks import Browser, Fold, Table
from retrace.report.browser import _answered, _classified, _packed, predictions_section
from retrace.report.page import as_html, as_markdown
from retrace.report.results import read_tasks
from retrace.results.grid import PREDICTIONS
from retrace.results.predictions import write_baselines, write_predictions

GRID = {"tasks": ["sst2"], "methods": ["full"], "questions": ["squad"], "squad_methods": ["full"], "seeds": [1, 2]}
TASK: dict[str, Any] = {"headlines": [], "legend": {}, "baselines": {}, "methods": {}, "comparisons": []}
SURE = math.log(3)  # a logit that is so much higher gives a class three quarters


@pytest.fixture
def run(here: Path) -> tuple[list[dict[str, Any]], list[Table]]:
    """What the script is given of each task, and the tables without it."""
    _write_reviews()
    _write_questions()
    details = Details.from_json({"sst2": TASK, "sst2-test": TASK, "squad": TASK})
    params = {"finetune": GRID}
    browser, *folds = predictions_section(params, read_tasks(details, params, with_curves=False)).blocks
    assert isinstance(browser, Browser)
    tables = [block for fold in folds if isinstance(fold, Fold) for block in fold.blocks if isinstance(block, Table)]
    return json.loads(zlib.decompress(base64.b64decode(browser.packed))), tables


def _write_reviews() -> None:
    """One review in the validation set and three in the test set; each seed has a different one wrong."""
    test = [Example("dull", None, 0), Example("bright", None, 1), Example("odd", None, 1)]
    parts = {"dev": [Example("seen", None, 0)], "test": test}
    write_task(TASKS / "sst2", TaskData(("negative", "positive"), parts))
    for seed, logits in ((1, [(SURE, 0.0), (SURE, 0.0), (0.0, 2 * SURE)]), (2, [(0.0, SURE)] * 3)):
        rows = [{"id": i, "label": test[i].label, "logit_0": low, "logit_1": high}
                for i, (low, high) in enumerate(logits)]  # fmt: skip
        before = [{**row, "logit_0": 0.0, "logit_1": 0.0} for row in rows]
        _write_run(Path("sst2/full") / str(seed), "test-", rows, before)
    write_baselines("sst2-test", {"majority": [1, 1, 1]})


def _write_questions() -> None:
    """Three questions on one passage, of which the second has no answer; the second seed has them all wrong."""
    golds = ["Ada", "", "Ada met Bob"]
    asked = [{"id": str(i), "question": "Who?", "answers": [{"text": gold, "answer_start": 0}] if gold else []}
             for i, gold in enumerate(golds)]  # fmt: skip
    paragraph = {"context": "Ada met Bob.", "qas": asked}
    write_json(QUESTIONS / "squad/dev.json", {"data": [{"title": "T", "paragraphs": [paragraph]}]})
    for seed, said in (
        (1, [("Ada met", 0, 2.0, 0.5), ("Bob", 8, 1.0, 3.0), ("Bob", 8, 4.0, 0.0)]),
        (2, [("Bob", 8, 1.0, 0.0), ("Bob", 8, 1.0, 0.0), ("Ada", 0, 1.0, 2.0)]),
    ):
        rows = [{"id": str(i), "text": text, "start": start, "score": score, "null_score": of_none}
                for i, (text, start, score, of_none) in enumerate(said)]  # fmt: skip
        _write_run(Path("squad/full") / str(seed), "", rows, [{**row, "null_score": 9.0} for row in rows])
    write_baselines("squad", {"no_answer": [{"text": "", "start": -1}] * 3})


def _write_run(path: Path, prefix: str, rows: list[dict[str, Any]], before: list[dict[str, Any]]) -> None:
    folder, loss = PREDICTIONS / path, "loss" if prefix else "validation_loss"
    folder.mkdir(parents=True)
    epochs = [{"epoch": epoch, **row} for epoch, of in enumerate((before, rows)) for row in of]
    kind = "classification" if path.parts[0] == "sst2" else "question_answering"
    write_predictions(folder / f"{prefix}predictions.parquet", kind, epochs)
    write_json(folder / f"{prefix}losses.json", [{"epoch": epoch, loss: 1.0, "kept": epoch == 1} for epoch in (0, 1)])


def test_classes_are_those_of_the_test_set_with_the_first_seeds_confidence_and_who_is_right(run) -> None:
    (reviews, _), (table, _) = run
    assert (reviews["title"], reviews["text"]) == ("Reviews, test set", ["dull", "bright", "odd"])
    assert (reviews["classes"], reviews["gold"]) == (["negative", "positive"], [0, 1, 1])
    assert reviews["methods"] == [
        {"name": "Full", "baseline": False, "right": ["101", "011"], "sure": [75, 75, 90], "said": [0, 0, 1]},
        {"name": "majority class", "baseline": True, "right": ["011"], "sure": None, "said": [1, 1, 1]},
    ]
    assert [*table.header] == ["№", "text", "right", "Full", "majority class"]
    assert [*table.rows[0]] == ["1", "dull", "negative", "✓ negative", "✗ positive"]
    assert [*table.rows[1]] == ["2", "bright", "positive", "✗ negative", "✓ positive"]


def test_an_answer_has_its_f1_and_how_far_it_is_above_no_answer(run) -> None:
    """Two words for one: 2 · ½ · 1 / 1½; none where there is none; one word of three: 2 · 1 · ⅓ / 1⅓, a half."""
    (_, questions), (_, table) = run
    assert questions["methods"] == [
        {"name": "Full", "baseline": False, "right": ["111", "000"], "sure": [15, -20, 40], "start": [0, -1, 8],
         "length": [7, 0, 3], "other": {}, "f1": [67, 100, 50]},
        {"name": "never answers", "baseline": True, "right": ["010"], "sure": None, "start": [-1, -1, -1],
         "length": [0, 0, 0], "other": {}, "f1": [0, 100, 0]},
    ]  # fmt: skip
    assert questions["gold"] == [[[0, 3]], [], [[0, 11]]]
    assert [*table.rows[1]] == ["2", "Who?", "Ada met Bob.", "no answer", "✓ no answer", "✓ no answer"]


@pytest.mark.usefixtures("run")
def test_what_is_shown_is_explained_where_it_is_shown() -> None:
    """Markdown has no browser, and tables where they are of the first examples."""
    details, params = Details.from_json({"sst2": TASK, "sst2-test": TASK, "squad": TASK}), {"finetune": GRID}
    tasks = read_tasks(details, params, with_curves=False)
    browsed = "All 6 examples with each method’s predictions. Dots: right (●) or wrong (○) with each seed. "
    shown, counted = "The answer shown is of the first seed.", "An answer counts as right if its F1 is at least 50%."
    for first, has_tables in ((None, False), (1, True)):
        section = predictions_section(params, tasks, first)
        page, markdown = (form("T", [section]) for form in (as_html, as_markdown))
        assert [said in page for said in (browsed, shown, counted)] == [True] * 3
        assert [said in markdown for said in (browsed, shown, counted)] == [False, has_tables, has_tables]


@pytest.mark.usefixtures("run")
@pytest.mark.parametrize(
    ("names", "said"),
    [(("sst2", "sst2-test"), [True, False, False]), (("squad",), [False, True, True]),
     (("sst2", "sst2-test", "squad"), [True, True, True])],
)  # fmt: skip
def test_what_stands_beside_predictions_is_explained_for_the_kinds_of_tasks_that_there_are(
    names: tuple[str, ...], said: list[bool]
) -> None:
    details, params = Details.from_json(dict.fromkeys(names, TASK)), {"finetune": GRID}
    browser, *_ = predictions_section(params, read_tasks(details, params, with_curves=False)).blocks
    assert isinstance(browser, Browser)
    texts = ("Next to a class: ", "Next to an answer, ", "An answer counts as right if its F1 is at least 50%.")
    assert [text in browser.note for text in texts] == said


def test_to_abstain_is_wrong_where_an_answer_has_no_words_left_as_in_the_scores() -> None:
    """The only right answer, "A", is empty after normalising: an empty text is right, to abstain is not."""
    questions = [Question("1", "A b", "?", (Answer("A", 0),)), Question("2", "A b", "?", ())]
    rows = pd.DataFrame({"id": ["1", "2"], "text": "b", "start": 2, "score": 1.0, "null_score": 2.0})
    (task,) = read_tasks(Details.from_json({"squad": TASK}), {"finetune": GRID}, with_curves=False)
    found = _answered(task, questions, {"Full": [rows]}, {"never answers": [{"text": "", "start": -1}] * 2})
    assert [(opinion.right, opinion.f1) for opinion in found.opinions.values()] == [(["01"], [0.0, 1.0])] * 2


def test_an_f1_of_exactly_half_counts_as_right_in_spite_of_rounding() -> None:
    """6 of 11 words are among the 13 right ones: 2 × 6 / (11 + 13)."""
    said, gold = "r1 r2 r3 r4 r5 r6 w1 w2 w3 w4 w5", "r1 r2 r3 r4 r5 r6 r7 r8 r9 r10 r11 r12 r13"
    assert 0.5 - 1e-12 < compare((gold,), said)[1] < 0.5
    rows = pd.DataFrame({"id": ["1"], "text": said, "start": -1, "score": 1.0, "null_score": 0.0})
    (task,) = read_tasks(Details.from_json({"squad": TASK}), {"finetune": GRID}, with_curves=False)
    found = _answered(task, [Question("1", gold, "Which?", (Answer(gold, 0),))], {"Full": [rows]}, {})
    assert found.opinions["Full"].right == ["1"]


def test_two_seeds_that_give_different_wrong_classes_are_told_apart() -> None:
    """Of four texts of the first class: right with both, with the second, the same wrong class, two wrong classes."""
    examples = [Example(text, None, 0) for text in "ABCD"]
    logits = [pd.DataFrame(np.eye(3)[said], columns=["logit_0", "logit_1", "logit_2"])
              for said in ([0, 1, 1, 1], [0, 0, 1, 2])]  # fmt: skip
    (task,) = read_tasks(Details.from_json({"sst2": TASK}), {"finetune": GRID}, with_curves=False)
    found = _packed(_classified(task, examples, ("good", "bad", "odd"), {"Full": logits}, {}))
    assert found["methods"][0]["right"] == ["1000", "1102"]
