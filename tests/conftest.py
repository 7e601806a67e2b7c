"""What tests share: one thread, and the project at toy size in a folder of its own."""

import os

os.environ["RETRACE_THREADS"] = "1"  # two-threaded runs collapse when both cores are busy
os.environ["OMP_NUM_THREADS"] = "1"
os.environ["RETRACE_SHARE_GPUS"] = "true"  # this process would keep its GPU from the processes that it starts
os.environ["ACCELERATE_USE_CPU"] = "1"  # also where there is a GPU, on which only tests/test_gpu.py runs

import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import settings

from tests import warm
from tests.hub import LocalHub
from tests.toy import Project, copy_project

os.fsync = lambda fd: None  # the power does not fail here, and flushing to a busy disk is slow
settings.register_profile("patient", deadline=None)  # a busy processor is no defect either
settings.load_profile("patient")


def pytest_configure(config: pytest.Config) -> None:
    """Name the place of the server that forks stages, one for all of xdist's workers."""
    if not hasattr(config, "workerinput"):
        folder = Path(tempfile.mkdtemp(prefix="warm-"))
        config.add_cleanup(lambda: shutil.rmtree(folder))
        os.environ[warm.VARIABLE] = warm.address(folder)


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty folder, in which the test runs."""
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def project(tmp_path: Path) -> Project:
    """A copy of the project with toy settings, not yet run."""
    return copy_project(tmp_path / "project")


@pytest.fixture
def hub(tmp_path: Path) -> Iterator[LocalHub]:
    """A hub that must serve every request, and whose clients must contact no other host."""
    with LocalHub(tmp_path / "hub") as hub:
        yield hub
    assert hub.unserved == []
    assert hub.outside == []


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    """Debian's Chromium, driven by Playwright."""
    reason = "requirements-dev.txt brings playwright and axe-playwright"
    playwright = pytest.importorskip("playwright.sync_api", reason=reason)
    pytest.importorskip("axe_playwright_python.sync_playwright", reason=reason)
    chromium = shutil.which("chromium")
    if chromium is None:
        pytest.skip("there is no chromium; on Debian: apt-get install chromium")
    with playwright.sync_playwright() as driver:
        found = driver.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
        yield found
        found.close()


def serious_violations(page: Any) -> list[tuple[str, str]]:
    """Serious or worse findings of axe on a page: the rule, and the first element that breaks it."""
    from axe_playwright_python.sync_playwright import Axe

    found = Axe().run(page).response["violations"]
    return [(each["id"], each["nodes"][0]["html"]) for each in found if each["impact"] in ("serious", "critical")]
