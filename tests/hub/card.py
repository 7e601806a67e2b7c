"""The yaml at the head of README.md, in which a repository says what it is."""

import re
from typing import Any

import yaml

_HEAD = re.compile(r"\A---\s*\n(.*?)^---\s*$", re.DOTALL | re.MULTILINE)


def read_metadata(readme: str) -> dict[str, Any]:
    """What the card says; nothing where it has no head. Raises yaml.YAMLError where that cannot be read."""
    head = _HEAD.match(readme)
    return (yaml.safe_load(head[1]) or {}) if head else {}
