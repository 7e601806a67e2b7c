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
