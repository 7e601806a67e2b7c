"""What tests share: one thread, and the project at toy size in a folder of its own."""

import os

os.environ["RETRACE_THREADS"] = "1"  # two-threaded runs collapse when both cores are busy
os.environ["OMP_NUM_THREADS"] = "1"

from pathlib import Path

import pytest

from tests.toy import Project, copy_project


@pytest.fixture
def project(tmp_path: Path) -> Project:
    """A copy of the project with toy settings, not yet run."""
    return copy_project(tmp_path / "project")
