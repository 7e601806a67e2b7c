"""Which commit the outputs in this folder belong to, if they belong to one."""

import json
import subprocess
import sys
from collections.abc import Sequence

from retrace.core.errors import InputError


def head_commit() -> str:
    """The commit that is checked out, 40 hexadecimal digits.

    Raises InputError where the folder is in no git repository with a commit.
    """
    return _output(["git", "rev-parse", "HEAD"]).strip()


def uncommitted_files() -> list[str]:
    """Files that differ from the commit or are not in it, but for ignored ones."""
    return [line[3:] for line in _output(["git", "status", "--porcelain"]).splitlines()]


def stale_stages(stages: Sequence[str]) -> list[str]:
    """Those of the DVC stages whose inputs or outputs are not what dvc.lock says."""
    return sorted(json.loads(_output([sys.executable, "-m", "dvc", "status", "--json", *stages])))


def _output(command: Sequence[str]) -> str:
    try:
        return subprocess.run(command, capture_output=True, text=True, check=True).stdout
    except FileNotFoundError:
        raise InputError(f"{command[0]}: no such program") from None
    except subprocess.CalledProcessError as error:
        said = error.stderr.strip().splitlines() or [f"exit code {error.returncode}"]
        raise InputError(f"{' '.join(map(str, command[-3:]))}: {said[-1]}") from None
