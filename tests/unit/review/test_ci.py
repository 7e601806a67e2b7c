"""What CI runs on a pull request: the script, on a small repository, and what its workflow may do."""

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from ruamel.yaml import YAML

from tests import warm
from tests.commands import write_program
from tests.toy import ROOT, Project, copy_settings

WORKFLOW: dict[str, Any] = YAML(typ="safe").load(ROOT / ".github/workflows/ci.yml")
GITLAB: dict[str, Any] = YAML(typ="safe").load(ROOT / ".ci/gitlab.yml")
STAGE = """stages:
  make:
    cmd: python make.py
    params: [lr]
    deps: [make.py]
    metrics: [reports/metrics.json: {cache: false}]
"""
MAKE = """import json, yaml
lr = yaml.safe_load(open('params.yaml'))['lr']
if lr > 1:
    raise SystemExit('cannot run')
json.dump({'sst2': {'baselines': {}, 'full': {'accuracy': lr}}}, open('reports/metrics.json', 'w'))
"""


@pytest.fixture
def project(tmp_path: Path) -> Project:
    """A commit whose figures were never run: it says 0.5, and gives 0.001 here. The script's programs start at once."""
    warmed = {f"BASH_FUNC_{name}%%": f'() {{ {" ".join(warm.COMMAND)} -m {module} "$@"; }}'
              for name, module in (("dvc", "dvc"), ("retrace", "retrace.cli.main"))}  # fmt: skip
    project = copy_settings(tmp_path).with_variables(PYTHONPATH=str(ROOT), **warmed)
    for name in (".ci", "reports"):
        (tmp_path / name).mkdir()
    shutil.copy(ROOT / ".ci/review", tmp_path / ".ci/review")
    (tmp_path / "dvc.yaml").write_text(STAGE)
    (tmp_path / "make.py").write_text(MAKE)
    (tmp_path / "reports/metrics.json").write_text(json.dumps({"sst2": {"baselines": {}, "full": {"accuracy": 0.5}}}))
    project.run("git", "init", "-q", "-b", "main")
    project.run("dvc", "init", "-q")
    _commit(project, 0.001)
    return project


def _commit(project: Project, lr: float) -> None:
    project.set("lr", lr)
    project.commit(f"lr {lr}")


def test_a_base_with_other_packages_counts_as_committed(project: Project) -> None:
    """It would run with the packages of this commit, and the comparison would be one of equal packages."""
    (project.folder / "requirements.txt").write_text("torch==9\n")
    _commit(project, 0.1)
    said = project.run(".ci/review", "HEAD^1", code=1).stdout
    assert said.startswith("**worse: reviews accuracy (full) −40.0 points.**\n")


def test_both_sides_are_run_here(project: Project) -> None:
    _commit(project, 0.9)
    said = project.run(".ci/review", "HEAD^1").stdout
    assert said.startswith("**better: reviews accuracy (full) +89.9 points, beyond the noise; no figure that ")
    assert "| lr | 0.001 | 0.9 |" in said


def test_a_fall_fails_and_a_base_that_does_not_run_counts_as_committed(project: Project) -> None:
    _commit(project, 9)
    _commit(project, 0.1)
    said = project.run(".ci/review", "HEAD^1", code=1).stdout
    assert said.startswith("**worse: reviews accuracy (full) −40.0 points.**\n")


def test_of_a_commit_that_does_not_run_it_is_said_that_it_does_not(project: Project) -> None:
    _commit(project, 9)
    said = project.run(".ci/review", "HEAD^1", code=2).stdout
    assert said == "**not compared: the pipeline does not run with this commit; the log says why.**\n"


def test_of_a_review_that_fails_it_is_said_that_it_does(project: Project) -> None:
    """As with a wrong setting that no stage reads."""
    project.set("review.tolerance.points", -1)
    _commit(project, 0.9)
    done = project.run(".ci/review", "HEAD^1", code=2)
    assert done.stdout == "**not compared: the review failed; the log says why.**\n"
    assert "review.tolerance" in done.stderr


def test_nothing_that_is_not_committed_is_thrown_away(project: Project) -> None:
    _commit(project, 0.1)
    (project.folder / "make.py").write_text("mine")
    assert project.run(".ci/review", "HEAD^1", code=2).stdout == ""
    assert (project.folder / "make.py").read_text() == "mine"


def test_actions_are_pinned_and_only_the_job_that_comments_may_write() -> None:
    steps = [step for job in WORKFLOW["jobs"].values() for step in job["steps"]]
    lines = re.findall(r"uses: (\S+)(.*)", (ROOT / ".github/workflows/ci.yml").read_text())
    assert len(lines) == sum("uses" in step for step in steps)
    for action, comment in lines:
        assert re.fullmatch(r"actions/[\w/-]+@[0-9a-f]{40}", action)
        assert re.fullmatch(r" # v\d+\.\d+\.\d+", comment)
    assert WORKFLOW["permissions"] == {"contents": "read"}
    assert {name for name, job in WORKFLOW["jobs"].items() if "permissions" in job} == {"comment"}
    assert set(WORKFLOW["on"]) == {"push", "pull_request"}, "pull_request_target would lend a fork our token"
    for step in steps:
        assert "secrets." not in str(step)
        assert "${{" not in step.get("run", ""), "what a pull request is called would be run by the shell"
        assert not step.get("uses", "").startswith("actions/checkout") or step["with"]["persist-credentials"] is False


def test_results_that_other_packages_computed_are_not_taken_from_the_cache() -> None:
    """DVC does not compare packages, so nothing would run with new ones."""
    steps = {step["uses"].partition("@")[0]: step for step in WORKFLOW["jobs"]["review"]["steps"] if "uses" in step}
    restore, save = (steps[f"actions/cache/{name}"] for name in ("restore", "save"))
    begins = "dvc-${{ runner.os }}-${{ hashFiles('requirements.txt') }}-"
    assert restore["with"]["restore-keys"] == begins
    assert restore["with"]["key"] == f"{begins}${{{{ github.sha }}}}"
    assert save["with"]["key"] == f"${{{{ steps.{restore['id']}.outputs.cache-primary-key }}}}"


@pytest.mark.parametrize(
    ("comment", "method"), [("", "POST repos/o/r/issues/3/comments"), ("12", "PATCH repos/o/r/issues/comments/12")]
)
def test_a_comment_is_updated_where_there_is_one(tmp_path: Path, comment: str, method: str) -> None:
    said = _posted(tmp_path, "**better: `$(touch /)`**", comment)
    assert f"api --method {method} --raw-field body=<!-- retrace-review -->\n**better: `$(touch /)`**\n" in said
    assert "https://example.org/o/r/actions/runs/7" in said


def test_of_a_review_that_is_too_long_for_a_comment_the_verdict_is_posted(tmp_path: Path) -> None:
    said = _posted(tmp_path, "**better**\n\nCompared with main.\n" + "| lr | 1 |\n" * 7000)
    assert "\n**better**\n\nCompared with main.\n\nThe rest is too long for a comment; review.md" in said
    assert len(said) < 1000


def _posted(tmp_path: Path, text: str, comment: str = "") -> str:
    """What is asked of a `gh` that writes down what it is asked and lists the comments of `$COMMENT`."""
    review, asked = (tmp_path / name for name in ("review.md", "asked"))
    script = 'printf "%s\\n" "$*" >> "$ASKED"\ncase "$*" in *--paginate*) printf "%s" "$COMMENT";; esac'
    write_program(tmp_path / "gh", script)
    review.write_text(text)
    names = {"GITHUB_REPOSITORY": "o/r", "GITHUB_SERVER_URL": "https://example.org", "GITHUB_RUN_ID": "7"}
    path = {"PATH": f"{tmp_path}:{os.environ['PATH']}", "ASKED": str(asked), "COMMENT": comment}
    subprocess.run([ROOT / ".github/workflows/comment.sh", "3", review], env=os.environ | names | path, check=True)
    return asked.read_text()


@pytest.mark.parametrize(
    ("notes", "asked", "review"),
    [
        ([{"id": 11, "body": "Thanks"}], "--request POST --data-urlencode body@body.md {}", "**better: `$(touch /)`**"),
        ([{"id": 11, "body": "Thanks"}, {"id": 12}], "--request PUT --data-urlencode body@body.md {}/12", None),
    ],
)
def test_gitlabs_comment_is_updated_too(
    tmp_path: Path, notes: list[dict[str, Any]], asked: str, review: str | None
) -> None:
    """With a `curl` that writes down what it is asked and lists the notes, of which the second is what was posted.

    Without a review, as where the job could not install the requirements, the comment says so.
    The token is given to it on standard input, as every user of a machine can read command lines.
    """
    said, given = (tmp_path / name for name in ("asked", "given"))
    script = 'printf "%s\\n" "$*" >> asked\ncat >> given\ncase "$*" in *per_page*) printf "%s" "$NOTES";; esac'
    write_program(tmp_path / "curl", script)
    if review:
        (tmp_path / "review.md").write_text(f"{review}\n")
    failed = "**not compared: the job failed before its review; its log says why.**"
    posted = f"<!-- retrace-review -->\n{review or failed}\n"
    listed = json.dumps([{"body": posted.rstrip()} | note for note in notes])
    names = {"CI_API_V4_URL": "https://example.org/api/v4", "CI_PROJECT_ID": "7", "CI_MERGE_REQUEST_IID": "3"}
    path = f"{tmp_path}:{Path(sys.executable).parent}:{os.environ['PATH']}"
    variables = os.environ | names | {"PATH": path, "REVIEW_TOKEN": "planted", "NOTES": listed}
    (script,) = GITLAB["review"]["after_script"]
    subprocess.run(["bash", "-c", script], cwd=tmp_path, env=variables, check=True)
    assert (tmp_path / "body.md").read_text() == posted
    first, last = said.read_text().splitlines()
    place = "https://example.org/api/v4/projects/7/merge_requests/3/notes"
    assert first.endswith(f"{place}?per_page=100&sort=asc"), "the oldest notes: it was posted with the first pipeline"
    assert last == f"--silent --fail --config - {asked.format(place)}"
    assert ("planted" in first, given.read_text()) == (False, 'header = "PRIVATE-TOKEN: planted"\n' * 2)
