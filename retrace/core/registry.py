"""Plug-ins that are found by file name: model families, fine-tuning methods, metrics.

To add one, add a file to its folder; its name in params.yaml is the file's name.
"""

import importlib
from pathlib import Path
from types import ModuleType

from retrace.core.settings import require_one_of


def plugin_names(package: str) -> list[str]:
    """The names of the modules in a package, sorted."""
    folder = Path(__file__).parents[2] / package.replace(".", "/")
    return sorted(path.stem for path in folder.glob("*.py") if path.stem != "__init__")


def load_plugin(package: str, name: str, key: str) -> ModuleType:
    """Import the module called `name` of a package.

    Raises InputError, which names `key` of params.yaml, where there is none.
    """
    require_one_of(plugin_names(package), name, key)
    return importlib.import_module(f"{package}.{name}")
