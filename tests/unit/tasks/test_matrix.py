from typing import Any

import pytest

from stages.harness.errors import InputError
from stages.harness.settings import build
from stages.tasks.matrix import Matrix

LISTED = {"classification": ["sst2", "news"], "methods": ["full", "lora"], "seeds": [1, 2]}


def _matrix(**more: Any) -> Matrix:
    return build(Matrix, {"finetune": LISTED | more}, "finetune")


def test_questions_are_asked_of_every_method_where_nothing_else_is_said() -> None:
    matrix = _matrix()
    assert matrix.tasks == ("sst2", "news", "squad")
    assert matrix.methods_of("squad") == matrix.methods_of("news") == ("full", "lora")


def test_questions_have_methods_of_their_own() -> None:
    matrix = _matrix(squad=["lora", "writer"])
    assert matrix.methods_of("squad") == ("lora", "writer")
    assert matrix.methods_of("sst2") == ("full", "lora")
    assert matrix.every_method == ("full", "lora", "writer")


def test_questions_are_left_out() -> None:
    assert _matrix(squad=[]).tasks == ("sst2", "news")


@pytest.mark.parametrize("field", ["classification", "methods", "seeds"])
def test_nothing_is_listed_twice(field: str) -> None:
    twice = [*LISTED[field], LISTED[field][0]]
    with pytest.raises(InputError, match=rf"^params.yaml: finetune.{field}: .* is not allowed; expected each once$"):
        _matrix(**{field: twice})
