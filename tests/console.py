"""The console script, run in this process."""

import sys
from pathlib import Path

import pytest

from retrace.cli import main as cli


def retrace(monkeypatch: pytest.MonkeyPatch, *arguments: str | Path) -> int:
    """Run `retrace` with these arguments; its exit code."""
    monkeypatch.setattr(sys, "argv", ["retrace", *map(str, arguments)])
    try:
        cli.main()
    except SystemExit as stop:
        return int(stop.code or 0)
    return 0
