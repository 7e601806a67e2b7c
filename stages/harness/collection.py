"""Python's search for objects that refer to one another in a circle, put off where millions are made that do not."""

import gc
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def without_collection() -> Iterator[None]:
    """No garbage is looked for meanwhile: of a hundred thousand questions that takes a third of the time.

    What nothing refers to is freed all the same.
    """
    was_on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_on:
            gc.enable()
