"""What `make` leaves of a step that fails."""

import os
import shutil
import subprocess
from pathlib import Path

from tests.toy import ROOT

# As Debian's without python3-venv, where `FAILS` is 1: `-m venv` makes a Python that has no pip, and fails.
PYTHON = """#!/bin/sh
case "$*" in *venv*) mkdir -p .venv/bin && ln -s "$0" .venv/bin/python && exit "$FAILS" ;; esac
"""
# As the demo of the hub where a step of it fails: it names its folder, in which something is.
DEMO = """#!/bin/sh
mkdir "$3/project" && echo "$3" && exit 3
"""


def test_an_environment_that_is_half_made_is_made_again(here: Path) -> None:
    shutil.copy(ROOT / "Makefile", here)
    python = here / "python"
    python.write_text(PYTHON)
    python.chmod(0o755)
    for fails in (True, False):
        variables = {"PATH": os.environ["PATH"], "FAILS": str(int(fails))}
        command = ["make", ".venv/bin/python", f"PYTHON={python}"]
        done = subprocess.run(command, env=variables, capture_output=True, check=False)
        assert (done.returncode > 0, Path(".venv/bin/python").exists()) == (fails, not fails), done


def test_a_demo_that_fails_fails_make_and_its_folder_is_removed(here: Path) -> None:
    shutil.copy(ROOT / "Makefile", here)
    python = here / ".venv/bin/python"
    python.parent.mkdir(parents=True)
    python.write_text(DEMO)
    python.chmod(0o755)
    variables = {"PATH": os.environ["PATH"], "TMPDIR": str(here)}
    command = ["make", "--silent", "--old-file=.venv/bin/.dev", "hub-demo"]  # without installing anything
    done = subprocess.run(command, env=variables, capture_output=True, text=True, check=False)
    (folder,) = done.stdout.splitlines()
    assert (done.returncode > 0, Path(folder).exists()) == (True, False), done
