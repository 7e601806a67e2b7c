"""Plug-ins that are found by file name: model families, fine-tuning methods, metrics.

To add one, add a file to its folder; its name in params.yaml is the file's name.
"""

import importlib
from pathlib import Path
from types import ModuleType

from retrace.core.errors import InputError


def plugin_names(package: str) -> list[str]:
    """The names of the modules in a package, sorted."""
    folder = Path(__file__).parents[2] / package.replace(".", "/")
    return sorted(path.stem for path in folder.glob("*.py") if path.stem != "__init__")


def load_plugin(package: str, name: str, key: str) -> ModuleType:
    """Import the module called `name` of a package.

    Raises InputError, which names `key` of params.yaml, where there is none.
    """
    names = plugin_names(package)
    if name not in names:
        raise InputError(f"params.yaml: {key}: {name!r} is not allowed; expected one of {', '.join(names)}")
    return importlib.import_module(f"{package}.{name}")
