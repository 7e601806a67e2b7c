"""What integration tests share: a toy project in which the whole pipeline has run."""

import pytest

from tests.toy import Project, copy_project


@pytest.fixture(scope="session")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Project:
    """A repository in which `dvc repro` has run, committed. Tests copy it before they change anything."""
    project = copy_project(tmp_path_factory.mktemp("finished") / "project", git=True)
    project.run("dvc", "repro")
    project.commit("run")
    return project
