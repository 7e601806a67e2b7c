"""A test's function, called in a separate process that knows only the local hub."""

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from tests import warm
from tests.hub.server import LocalHub
from tests.toy import ROOT, TIMEOUT

_CALL = """
import importlib, json, sys
module, name, arguments = json.loads(sys.argv[1])
print(json.dumps(getattr(importlib.import_module(module), name)(*arguments)))
"""


def run_client(
    hub: LocalHub, home: Path, function: Callable[..., Any], *arguments: Any, variables: dict[str, str] | None = None
) -> Any:
    """What the function returns there, passed as json; it must be one of a module, and import the clients itself."""
    environment = {**hub.environment(home), "HF_HUB_DISABLE_PROGRESS_BARS": "1", **(variables or {})}
    python = warm.COMMAND if environment.get(warm.VARIABLE) else [sys.executable]
    command = [*python, "-c", _CALL, json.dumps([function.__module__, function.__name__, arguments])]
    done = subprocess.run(
        command, cwd=ROOT, env=environment, capture_output=True, text=True, timeout=TIMEOUT, check=False
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout.splitlines()[-1])
