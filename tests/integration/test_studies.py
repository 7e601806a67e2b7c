"""Each study's small run, from nothing to its whole report, on what the local hub serves under the published names."""

import json
from pathlib import Path
from typing import Any

import pytest
from datasets import disable_progress_bars

from tests.hub import LocalHub
from tests.hub.content.studies import add_study, fill_folders
from tests.toy import Project, copy_project

pytestmark = pytest.mark.slow
STUDIES = ("bert-wikitext2", "bert-mlm-nsp", "llama-frozen", "roberta-small", "plm-peft")
LINES = 100  # which a study's dvc.yaml stays under
SIXTH = {
    "params.yaml": """
profile: small
precision: auto
data: hub
models:
  modern: {family: modernbert, from: answerdotai/ModernBERT-base@0123456789abcdef0123456789abcdef01234567}
hub:
  classification:
    topics: {repository: org/topics@89abcdef0123456789abcdef0123456789abcdef, dev: test, text: text, label: label}
finetune: {classification: [topics], methods: [modern, thin], squad: [], seeds: [1]}
methods:
  modern: {tuning: full, model: modern}
  thin: {tuning: lora, model: modern, rank: 4}
scores:
  {classification: [accuracy, f1], squad: [squad_v2], curves: [accuracy, f1, squad_v2], resamples: 200, seed: 0}
report: {samples: 2}
profiles:
  small:
    topics: {lr: 0.001, epochs: 1, batch_size: 32, max_length: 48, examples: 96, keep: last}
""",
    "published.yaml": """
title: A sixth study
source: nobody
tables:
  - name: topics
    title: Accuracy (%)
    scale: percent
    best: column
    columns: {Topics: topics}
    rows: {ModernBERT: modern, LoRA: thin}
    figures: score.{column}.{row}.accuracy
    published: {ModernBERT: [90.1 ± 0.2], LoRA: [null]}
""",
}  # fmt: skip


@pytest.fixture(autouse=True)
def _quiet() -> None:
    disable_progress_bars()


def _run_small(project: Project, hub: LocalHub, home: Path, study: str, **values: Any) -> Path:
    """`dvc repro` of the study with its profile small; its folder."""
    folder = project.folder / "studies" / study
    place = Project(folder)
    place.set_all({"profile": "small", **values})
    add_study(hub, folder)
    fill_folders(folder)
    # Without Accelerate's launcher, which takes longer than a tiny model: the root's own tests run it.
    user = project.with_variables(**hub.environment(home), RETRACE_RUN="python")
    user.run("dvc", "repro", f"studies/{study}/dvc.yaml")
    return folder


@pytest.mark.parametrize("study", STUDIES)
def test_the_small_run_fills_every_cell(tmp_path: Path, hub: LocalHub, study: str) -> None:
    project = copy_project(tmp_path / "project", git=True)
    values = {"finetune.seeds": [1, 2]} if study == "plm-peft" else {}
    folder = _run_small(project, hub, tmp_path / "home", study, **values)
    found = json.loads((folder / "reports" / "study.json").read_text())
    cells = {
        f"{name}/{row}/{column}": cell
        for name, table in found["tables"].items()
        for row, columns in table["rows"].items()
        for column, cell in columns.items()
    }
    assert len(cells) > 5
    assert [place for place, cell in cells.items() if cell["verdict"] == "not run"] == []
    counted = {place: cell["verdict"] for place, cell in cells.items() if "parameters" in place or "memory" in place}
    assert set(counted.values()) <= {"exact", "beyond", "no figure published"}
    page = (folder / "reports/study/report.md").read_text()
    assert "NOT comparable with the published ones" in page
    said = project.run("retrace", "study", "compare", study).stdout
    assert all(table in said for table in found["tables"])


def test_a_sixth_study_takes_only_its_folder(tmp_path: Path, hub: LocalHub) -> None:
    project = copy_project(tmp_path / "project", git=True)
    folder = project.folder / "studies" / "sixth"
    folder.mkdir()
    for name, text in SIXTH.items():
        (folder / name).write_text(text)
    stages = (project.folder / "studies" / "plm-peft" / "dvc.yaml").read_text()
    own_files = stages.index("  classification:\n"), stages.index("  hub-classification:\n")
    stages = stages[: own_files[0]] + stages[own_files[1] :]
    (folder / "dvc.yaml").write_text(stages.replace("families/roberta.py", "families/modernbert.py"))
    _run_small(project, hub, tmp_path / "home", "sixth")
    rows = json.loads((folder / "reports" / "study.json").read_text())["tables"]["topics"]["rows"]
    assert rows["ModernBERT"]["Topics"]["printed"] == "90.1 ± 0.2"
    assert rows["LoRA"]["Topics"]["verdict"] == "no figure published"
    assert 0 <= rows["LoRA"]["Topics"]["reproduced"] <= 100


@pytest.mark.parametrize("study", [*STUDIES, "two-cores"])
def test_a_study_is_settings(study: str) -> None:
    folder = Path(__file__).parents[2] / "studies" / study
    assert {path.name for path in folder.iterdir()} >= {"dvc.yaml", "params.yaml", "published.yaml"}
    assert len((folder / "dvc.yaml").read_text().splitlines()) < LINES
    assert not list(folder.glob("*.py"))
