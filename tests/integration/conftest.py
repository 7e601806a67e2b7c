"""What integration tests share: a toy project in which the whole pipeline has run."""

import os
from pathlib import Path

import pytest
from filelock import FileLock

from tests.toy import Project, copy_project

PLANTED = "planted-secret"  # in the environment of the run, for a test that searches what was written
SECRETS = ("HF_TOKEN", "AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "USER", "LOGNAME")


def pytest_itemcollected(item: pytest.Item) -> None:
    """All tests here run stages or DVC."""
    item.add_marker(pytest.mark.slow)


@pytest.fixture(scope="session")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Project:
    """A repository in which `dvc repro` has run, committed; beside it what that printed. One for all processes.

    Tests copy it before they change anything.
    """
    session = tmp_path_factory.getbasetemp()
    folder = (session.parent if "PYTEST_XDIST_WORKER" in os.environ else session) / "finished"
    with FileLock(f"{folder}.lock"):
        if not folder.is_dir():
            project = copy_project(folder.with_name("finishing"), git=True)
            done = project.with_variables(**dict.fromkeys(SECRETS, PLANTED)).run("dvc", "repro")
            folder.with_suffix(".log").write_text(done.stdout + done.stderr)
            project.commit("run")
            project.folder.rename(folder)
    return Project(folder)


@pytest.fixture(scope="session")
def prepared(tmp_path_factory: pytest.TempPathFactory) -> Project:
    """What `ready` copies; to be read only."""
    project = copy_project(tmp_path_factory.mktemp("prepared") / "project")
    for stage in ("sources.sample", "sources.model", "tokenize"):
        project.stage(stage)
    return project


@pytest.fixture
def ready(prepared: Project, tmp_path: Path) -> Project:
    """A project whose next stage is pretraining."""
    return prepared.copy(tmp_path / "project")
