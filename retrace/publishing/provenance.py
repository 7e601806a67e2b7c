"""Which commit the outputs in this folder belong to, if they belong to one."""

import subprocess
from collections.abc import Sequence

from retrace.core.errors import InputError


def head_commit() -> str:
    """The commit that is checked out, 40 hexadecimal digits.

    Raises InputError where the folder is in no git repository with a commit.
    """
    return _git("rev-parse", "HEAD").strip()


def uncommitted_files() -> list[str]:
    """Files that differ from the commit or are not in it, but for ignored ones."""
    return [line[3:] for line in _git("status", "--porcelain").splitlines()]


def stale_stages(stages: Sequence[str]) -> list[str]:
    """Those of the DVC stages whose inputs or outputs are not what dvc.lock says.

    Raises InputError where DVC has no such stage.
    """
    from dvc.exceptions import DvcException  # here, as DVC takes a second to import
    from dvc.repo import Repo

    try:
        with Repo() as repo:
            return sorted(repo.status(targets=list(stages)))
    except DvcException as error:
        raise InputError(f"dvc status: {error}") from None


def _git(*arguments: str) -> str:
    try:
        return subprocess.run(["git", *arguments], capture_output=True, text=True, check=True).stdout
    except FileNotFoundError:
        raise InputError("git: no such program") from None
    except subprocess.CalledProcessError as error:
        raise InputError(f"git {' '.join(arguments)}: {error.stderr.strip().splitlines()[-1]}") from None
