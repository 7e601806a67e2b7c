"""The pull request comment: metrics and params against a base that a shallow clone does not have."""

import json
from pathlib import Path

from tests.toy import Project, copy_project


def _metrics(project: Project, loss: float) -> None:
    reports = project.folder / "reports"
    reports.mkdir(exist_ok=True)
    (reports / "metrics.json").write_text(json.dumps({"sst2": {"full": {"1": {"loss": loss}}}}))
    (reports / "perplexity.json").write_text("{}")


def test_the_comment_compares_with_the_base_branch(tmp_path: Path) -> None:
    origin = copy_project(tmp_path / "origin", git=True)
    _metrics(origin, 0.5)
    origin.commit("base")
    origin.run("git", "checkout", "-qb", "change")
    _metrics(origin, 0.25)
    origin.set("lr", 0.0005)
    origin.commit("change")
    clone = tmp_path / "clone"
    origin.run("git", "clone", "-q", "--depth=1", "--branch", "change", f"file://{origin.folder}", str(clone))
    comment = Project(clone).run("bash", ".github/workflows/compare.sh", "main").stdout
    assert comment.startswith("<!-- retrace-metrics -->\n## Metrics against main")
    assert "sst2.full.1.loss" in comment
    assert "-0.25" in comment
    assert "lr" in comment
    assert "0.0005" in comment
