"""A study's last stage, of a study whose other stages' outputs were written by hand."""

import json
import os
from pathlib import Path

import pytest

from retrace.core.files import write_json
from tests.study import EVIL, PUBLISHED, write_study
from tests.toy import ROOT, Project

RUN = ("--published", "published.yaml", "--run", "small")


def _written(folder: Path) -> Project:
    """A folder of studies/, the code being that of this project."""
    write_study(folder / "studies/mood")
    return Project(folder / "studies/mood", {**os.environ, "PYTHONPATH": str(ROOT)})


@pytest.fixture
def study(tmp_path: Path) -> Project:
    return _written(tmp_path)


@pytest.fixture(scope="module")
def compared(tmp_path_factory: pytest.TempPathFactory) -> Project:
    """A study whose last stage was run; to be read only."""
    study = _written(tmp_path_factory.mktemp("compared"))
    done = study.stage("compare", *RUN)
    assert "report.html: 3 within, 1 not measured, 1 beyond, 1 of this machine, 2 exact\n" in done.stdout
    assert done.stderr == ""
    return study


def test_published_and_reproduced_stand_side_by_side(compared: Project) -> None:
    report = json.loads((compared.folder / "reports/study.json").read_text())
    assert (report["title"], report["small"]) == (EVIL, True)
    verdicts = {f"{name} {row} {column}": cell["verdict"] for name, table in report["tables"].items()
                for row, cells in table["rows"].items() for column, cell in cells.items()}  # fmt: skip
    assert verdicts == {
        "accuracy Full Mood": "within", "accuracy LoRA Mood": "not measured",
        "scores accuracy figure": "beyond", "scores precision figure": "within", "scores recall figure": "within",
        "cost it time": "of this machine", "cost it parameters": "exact", "cost it memory": "exact",
    }  # fmt: skip
    page = (compared.folder / "reports/study/report.md").read_text()
    for said in (
        "| Full | 77.41 ± 2.81 | 75.00 ± 0.00 (69.00 – 81.00) |",
        "| accuracy | 0.5092 | 0.7500 ± 0.0000 (0.6900 – 0.8100) ≠ |",
        "| it | 60 | 12 |",
        "| accuracy | % | 50.0 (40.0 – 60.0) |",
        "- Warning: Not above the majority class: Full on mood. Not shown to be better than always naming the most "
        "frequent class.\n  - mood, Full, seed 1: accuracy 0.75, majority 0.5.\n",
        "Retrace notices: scores: mood full: recall without accuracy",
        "![mood: training loss](figures/mood-training_loss.svg)",
        "Training started from the weights of org/tiny@0123 (licence: mit).",
        "the first 1 of 2</summary>",
        r"| 1 | \<script\>good\</script\> | good | ✓ good |",
    ):
        assert said in page
    assert "| 2 | bad ale |" not in page
    figures = {path.name for path in (compared.folder / "reports/study/figures").iterdir()}
    assert {"mood-accuracy.svg", "mood-confusion.svg", "mood-loss.svg", "mood-training_loss.svg"} <= figures


def test_text_is_escaped_on_the_page(compared: Project) -> None:
    page = (compared.folder / "reports/study/report.html").read_text()
    assert page.count("<script") == 2  # the page's own, and its data
    assert "&lt;script&gt;good&lt;/script&gt;" in page


def test_a_rerun_gives_the_same_bytes_whatever_time_it_took(study: Project) -> None:
    study.stage("compare", *RUN)
    before = (study.folder / "reports/study.json").read_bytes()
    for path in (study.folder / "reports/runs").rglob("*.json"):
        path.write_text(path.read_text().replace("12.5", "99.5"))
    study.stage("compare", *RUN)
    assert (study.folder / "reports/study.json").read_bytes() == before
    assert "| it | 60 | 100 |" in (study.folder / "reports/study/report.md").read_text()


def test_what_is_wrong_is_one_line_and_leaves_no_reports(study: Project) -> None:
    doubt = {**PUBLISHED["doubts"][0], "figures": {"here": "score.mood.full.f1"}}
    write_json(study.folder / "published.yaml", {**PUBLISHED, "doubts": [doubt]})  # json is YAML too
    done = study.stage("compare", *RUN, code=2)
    assert done.stderr.startswith("error: published.yaml: doubts[0]: here: ")
    assert done.stderr.count("\n") == 1
    assert not (study.folder / "reports/study.json").exists()


def test_the_command_compares_what_was_run(compared: Project) -> None:
    root = Project(compared.folder.parents[1], compared.variables)
    shown = [line.split() for line in root.stage("retrace.cli.main", "study", "compare", "mood").stdout.splitlines()]
    assert "scores accuracy figure 0.5092 0.7500 ± 0.0000 (0.6900 – 0.8100) ≠ beyond".split() in shown
    assert "cost it time 60 – of this machine".split() in shown
    assert " ".join(shown[-1]) == "8 figures: 2 exact, 3 within, 1 beyond, 1 not measured, 1 of this machine"
