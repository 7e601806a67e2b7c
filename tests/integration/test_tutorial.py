"""docs/tutorial.md with real DVC: from a clone to a reviewed change, its commands bare, none with a warning."""

import re
import shutil
import subprocess

import pytest
from ruamel.yaml import YAML

from retrace.core.files import SUMS
from retrace.core.paths import CARD
from tests.toy import Project, write_glue

pytestmark = pytest.mark.timeout(900)

OWN = {"wikitext-2": "text", "sst2": "classification/sst2", "squad": "question_answering/squad"}  # → in data


def _quiet(project: Project, *command: str) -> str:
    """What a command prints; it must end with 0 and warn of nothing."""
    done = project.run(*command)
    said = done.stdout + done.stderr
    assert not re.search(r"warning|^error|failed", said, re.IGNORECASE | re.MULTILINE), said
    return said


@pytest.fixture(scope="module")
def clone(finished: Project, tmp_path_factory: pytest.TempPathFactory) -> Project:
    """A clone of a project that was run and pushed, with what the remote holds pulled."""
    folder = tmp_path_factory.mktemp("tutorial")
    project = finished.copy(folder / "project")
    (folder / "remote").mkdir()
    _quiet(project, "dvc", "remote", "add", "--default", "storage", str(folder / "remote"))
    project.commit("where results are kept")
    _quiet(project, "dvc", "push")
    subprocess.run(["git", "clone", "-q", project.folder, folder / "clone"], check=True)
    clone = Project(folder / "clone", project.variables)
    for key, value in (("user.name", "test"), ("user.email", "test@example.org")):
        clone.run("git", "config", key, value)
    _quiet(clone, "dvc", "pull")
    return clone


def test_a_pulled_clone_is_up_to_date(clone: Project) -> None:
    assert (clone.folder / "reports/report.html").is_file()
    for command in ("status", "repro"):
        assert "Data and pipelines are up to date." in _quiet(clone, "dvc", command)
    assert _quiet(clone, "dvc", "checkout") == ""
    assert _quiet(clone, "dvc", "metrics", "diff") == ""


def test_an_experiment_changes_one_setting_and_is_applied(clone: Project) -> None:
    said = _quiet(clone, "dvc", "exp", "run", "--name", "faster", "-S", "lr=5e-4")
    ran = set(re.findall(r"Running stage '(.+?)'", said))
    assert ran == set(YAML(typ="safe").load(clone.folder / "dvc.lock")["stages"]) - {"tokenize"}
    assert _quiet(clone, "dvc", "params", "diff").split()[-4:] == ["params.yaml", "lr", "0.002", "0.0005"]
    difference = _quiet(clone, "dvc", "metrics", "diff", "--md")
    assert all(name in difference for name in ("reports/perplexity.json", "valid.masked", "sst2.full.validation_loss"))
    assert "baselines" not in difference
    review = clone.stage("retrace.cli.main", "review", code=None).stdout  # a toy model may have become worse, so 0 or 1
    assert "| lr | 0.002 | 0.0005 |" in review
    assert " over documents |" in review, "both have their losses, the last commit's in DVC's cache"
    assert "out of date" not in review
    clone.run("git", "checkout", "-q", ".")
    _quiet(clone, "dvc", "checkout")
    assert "faster" in _quiet(clone, "dvc", "exp", "show", "--only-changed")
    _quiet(clone, "dvc", "exp", "apply", "faster")
    assert "Data and pipelines are up to date." in _quiet(clone, "dvc", "status")
    _quiet(clone, "dvc", "plots", "show")
    _quiet(clone, "dvc", "plots", "diff", "HEAD")
    clone.commit("a lower learning rate")
    _quiet(clone, "dvc", "push")


@pytest.mark.thorough
def test_a_queue_runs_beside_the_workspace(clone: Project) -> None:
    names = [f"seed-{seed}" for seed in (1, 2)]  # one by the queue's worker, one beside it
    for seed, name in enumerate(names, 1):
        _quiet(clone, "dvc", "exp", "run", "--queue", "--name", name, "-S", f"metrics.seed={seed}")
    clone.run("dvc", "queue", "start")
    _quiet(clone, "dvc", "exp", "run", "--run-all")
    listed = _quiet(clone, "dvc", "queue", "status")
    assert listed.count("Success") == len(names), listed
    shown = _quiet(clone, "dvc", "exp", "show", "--only-changed")
    assert all(name in shown for name in names)
    _quiet(clone, "dvc", "exp", "remove", *names)
    clone.run("dvc", "gc", "--workspace", "--force")
    assert "Data and pipelines are up to date." in _quiet(clone, "dvc", "status")


def test_own_data_is_tracked_with_dvc_and_goes_into_experiments(clone: Project) -> None:
    data, own = clone.folder / "data", clone.folder / "data/own"
    for name, of in OWN.items():
        shutil.copytree(data / of, own / name, ignore=shutil.ignore_patterns(SUMS, CARD))
    write_glue(own / "sst2")
    for part in ("train", "dev"):
        (own / "squad" / f"{part}.json").rename(own / "squad" / f"{part}-v2.0.json")
    _quiet(clone, "dvc", "add", *(f"data/own/{name}" for name in OWN))
    clone.commit("our own data")
    clone.run("dvc", "exp", "run", "--temp", "--name", "own", "-S", "data=files")
    clone.run("dvc", "exp", "apply", "own")
    assert "stages.sources.files" in (clone.folder / "data/dvc.lock").read_text()
    assert "Data and pipelines are up to date." in _quiet(clone, "dvc", "status")
