import gc

import pytest

from retrace.datasets.card import without_collection


def _fail() -> None:
    assert not gc.isenabled()
    raise KeyError


def test_garbage_is_looked_for_again_afterwards() -> None:
    with pytest.raises(KeyError), without_collection():
        _fail()
    assert gc.isenabled()


def test_what_was_off_stays_off() -> None:
    gc.disable()
    try:
        with without_collection():
            pass
        assert not gc.isenabled()
    finally:
        gc.enable()
