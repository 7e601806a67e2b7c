"""How a machine is used: environment variables, which do not change results, and the cores that there are."""

import os

from retrace.core.errors import InputError


def is_true(variable: str) -> bool:
    """Whether an environment variable is true; raises InputError if it is neither true, false nor unset."""
    wanted = os.environ.get(variable) or "false"
    if wanted not in ("true", "false"):
        raise InputError(f"{variable}: {wanted!r} is not allowed; expected true or false")
    return wanted == "true"


def whole_number(variable: str) -> int | None:
    """The number in an environment variable, None if unset; raises InputError if it is not a whole number above 0."""
    wanted = os.environ.get(variable, "")
    if wanted and (not wanted.isdecimal() or int(wanted) < 1):
        raise InputError(f"{variable}: {wanted!r} is not allowed; expected a whole number above 0")
    return int(wanted) if wanted else None


def cores() -> int:
    """The cores that this process may use; the limit of a container (`docker run --cpus`) is rounded up."""
    from joblib import cpu_count  # takes as long to import as a command's help

    return cpu_count()
