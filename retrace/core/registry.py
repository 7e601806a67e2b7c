"""Parts that are found by their file: a model family, a tuning method, a metric, a command.

Adding one is adding a file to its folder; its name in params.yaml is the file's name.
"""

import importlib
from pathlib import Path
from types import ModuleType

from retrace.core.errors import InputError


def plugin_names(package: str) -> list[str]:
    """The names of the modules in the folder of `package`, sorted."""
    folder = Path(__file__).parents[2] / package.replace(".", "/")
    return sorted(path.stem for path in folder.glob("*.py") if path.stem != "__init__")


def load_plugin(package: str, name: str, key: str) -> ModuleType:
    """The module called `name`; an InputError that names `key` of params.yaml where there is none."""
    names = plugin_names(package)
    if name not in names:
        raise InputError(f"params.yaml: {key}: {name!r} is not allowed; expected one of {', '.join(names)}")
    return importlib.import_module(f"{package}.{name}")
