"""Each study's small run, from nothing to its whole report, on what the local hub serves under the published names."""

import json
from pathlib import Path

import pytest

from tests.hub import LocalHub
from tests.hub.content.studies import add_study, fill_folders
from tests.toy import Project, copy_project

THOROUGH = (pytest.param(study, marks=pytest.mark.thorough) for study in ("roberta-small", "plm-peft"))
STUDIES = ("bert-mlm-nsp", "sixth", *THOROUGH)


@pytest.mark.parametrize("study", STUDIES)
def test_the_small_run_fills_every_cell(tmp_path: Path, hub: LocalHub, study: str) -> None:
    """A study needs nothing but its folder: one has a name that occurs in no file of the project."""
    project = copy_project(tmp_path / "project", git=True)
    folder = project.folder / "studies" / study
    if study == "sixth":
        (project.folder / "studies/llama-frozen").rename(folder)
    project.set("metrics.bootstrap_samples", 200)
    published = folder / "published.yaml"  # 64 layers are half a minute's work
    published.write_text(published.read_text().replace("- kind: memory", "- example: false\n    kind: memory"))
    project.commit(f"{study}, small")
    add_study(hub, folder)
    fill_folders(folder)
    user = project.with_variables(**hub.environment(tmp_path / "home"))
    user.stage("retrace.cli.main", "study", "run", study, "--small")
    found = json.loads((folder / "reports/study.json").read_text())
    cells = {f"{name}/{row}/{column}": cell["verdict"] for name, table in found["tables"].items()
             for row, columns in table["rows"].items() for column, cell in columns.items()}  # fmt: skip
    assert len(cells) > 5
    assert "not measured" not in cells.values()
    counted = {verdict for place, verdict in cells.items() if "parameters" in place or "memory" in place}
    assert counted <= {"exact", "beyond", "no figure published"}
    assert "NOT comparable with the published ones" in (folder / "reports/report.md").read_text()
    if study == "bert-mlm-nsp":  # which bert-wikitext2 differs from by one setting: its figures are all there
        published = ["--published", str(project.folder / "studies/bert-wikitext2/published.yaml"), "--run", "small"]
        workspace = Project(project.folder / f".retrace/studies/{study}-small", user.variables)
        assert "not measured" not in workspace.stage("compare", *published).stdout
    if study == "sixth":
        changed = project.run("git", "status", "--porcelain").stdout.split()
        assert {path for path in changed if path != "??"} == {"studies/sixth/reports/"}
        again = user.stage("retrace.cli.main", "study", "run", study, "--small").stdout
        assert "Running stage" not in again
        assert "studies/dvc.yaml:compare' didn't change" in again


def test_a_run_that_fails_says_so_and_leaves_no_reports(tmp_path: Path) -> None:
    project = copy_project(tmp_path / "project", git=True)
    done = project.stage("retrace.cli.main", "study", "run", "two-cores", code=255)
    assert "data/own/wikitext-2" in done.stderr
    assert not (project.folder / "studies/two-cores/reports").exists()
