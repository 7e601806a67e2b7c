import pytest

from stages.harness.errors import InputError
from stages.harness.plugins import load_plugin, plugin_names


def test_finds_a_plugin_by_its_file() -> None:
    assert {"full", "scratch"} <= set(plugin_names("stages.tuning"))
    assert load_plugin("stages.tuning", "full", "finetune.methods").__name__ == "stages.tuning.full"


def test_an_unknown_name_is_told_the_known_ones() -> None:
    with pytest.raises(InputError, match=r"finetune\.methods: 'fool' is not allowed; expected one of .*full"):
        load_plugin("stages.tuning", "fool", "finetune.methods")
