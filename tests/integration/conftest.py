"""What integration tests share: a toy project in which the whole pipeline has run."""

import pytest

from tests.toy import Project, copy_project

PLANTED = "planted-secret"  # in the environment of the run, for a test that searches what was written
SECRETS = ("HF_TOKEN", "AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "USER", "LOGNAME")


@pytest.fixture(scope="session")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Project:
    """A repository in which `dvc repro` has run, committed. Tests copy it before they change anything."""
    project = copy_project(tmp_path_factory.mktemp("finished") / "project", git=True)
    project.with_variables(**dict.fromkeys(SECRETS, PLANTED)).run("dvc", "repro")
    project.commit("run")
    return project
