import pytest

from retrace.core.errors import InputError
from retrace.core.settings import load_plugin, plugin_names


def test_finds_a_plugin_by_its_file() -> None:
    assert {"full", "scratch"} <= set(plugin_names("retrace.methods"))
    assert load_plugin("retrace.methods", "full", "finetune.methods").__name__ == "retrace.methods.full"


def test_an_unknown_name_is_told_the_known_ones() -> None:
    with pytest.raises(InputError, match=r"finetune\.methods: 'fool' is not allowed; expected one of .*full"):
        load_plugin("retrace.methods", "fool", "finetune.methods")
