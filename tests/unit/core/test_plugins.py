"""Plug-ins that cannot be used end in one line, which names their file."""

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from retrace.core import settings
from retrace.core.errors import InputError
from retrace.core.settings import load_plugin, parse_source


@pytest.fixture
def plugins(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """The folder of a package of plug-ins, `kinds.plugins`."""
    folder = tmp_path / "kinds/plugins"
    folder.mkdir(parents=True)
    for package in (folder, folder.parent):
        (package / "__init__.py").write_text("")
    monkeypatch.setattr(settings, "PROJECT", tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    yield folder
    for name in [name for name in sys.modules if name.partition(".")[0] == "kinds"]:
        del sys.modules[name]


@pytest.mark.parametrize(
    ("source", "message"),
    [
        ("NAME = 1\ndef run(:\n    pass\n", "kinds/plugins/own.py:2: invalid syntax"),
        ("import absent_package\n",
         "kinds/plugins/own.py: cannot be imported: ModuleNotFoundError: No module named 'absent_package'"),
        ("NAME = 1 / 0\n", "kinds/plugins/own.py: cannot be imported: ZeroDivisionError: division by zero"),
        ("RUN = NAME = 1\n",
         "kinds/plugins/own.py: does not define run; docs/architecture.md says what such a file needs"),
    ],
)  # fmt: skip
def test_a_plugin_that_cannot_be_used(plugins: Path, source: str, message: str) -> None:
    (plugins / "own.py").write_text(source)
    with pytest.raises(InputError) as raised:
        load_plugin("kinds.plugins", "own", ("NAME", "run"), "kind")
    assert str(raised.value) == message


def test_a_plugin(plugins: Path) -> None:
    (plugins / "own.py").write_text("NAME = 1\ndef run():\n    return 2\n")
    assert load_plugin("kinds.plugins", "own", ("NAME", "run"), "kind").run() == 2
    with pytest.raises(InputError, match=r"^params.yaml: kind: 'other' is not allowed; expected one of own$"):
        load_plugin("kinds.plugins", "other", (), "kind")


def test_a_file_that_is_parsed_only(plugins: Path) -> None:
    (plugins / "own.py").write_text("NAME = 1\nNAME = (\n")
    with pytest.raises(InputError, match=r"^kinds/plugins/own.py:2: '\(' was never closed$"):
        parse_source(plugins / "own.py")
