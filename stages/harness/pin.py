"""A repository of the Hugging Face Hub at a commit, as params.yaml names it.

Apart from what fetches it, so that a pin is read without the hub's client, which takes long to import.
"""

import re
from dataclasses import dataclass

from stages.harness.errors import InputError

PINNED = "expected org/name@commit, the commit as 40 hex digits"
_PIN = re.compile(r"([\w.-]+(?:/[\w.-]+)?)@([0-9a-f]{40})")


@dataclass(frozen=True)
class Pin:
    """A repository at a commit; a branch or tag may move and is none."""

    repository: str
    commit: str

    @classmethod
    def parse(cls, text: str, key: str) -> "Pin":
        """The pin that `key` in params.yaml holds.

        Raises InputError where it is none.
        """
        found = _PIN.fullmatch(text)
        if not found:
            raise InputError(f"params.yaml: {key}: {text!r} is not allowed; {PINNED}")
        return cls(found[1], found[2])

    def __str__(self) -> str:
        return f"{self.repository}@{self.commit}"


def is_pin(text: str) -> bool:
    """Whether a text names a repository at a commit."""
    return _PIN.fullmatch(text) is not None
