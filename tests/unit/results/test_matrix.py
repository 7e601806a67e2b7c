from typing import Any

import pytest

from retrace.core.errors import InputError
from retrace.core.settings import build
from retrace.results.grid import Grid

LISTED = {"classification": ["sst2", "news"], "methods": ["full", "lora"], "seeds": [1, 2]}


def _matrix(**more: Any) -> Grid:
    return build(Grid, {"finetune": LISTED | more}, "finetune")


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


@pytest.mark.parametrize("field", ["classification", "methods", "seeds", "squad"])
def test_nothing_is_listed_twice(field: str) -> None:
    listed = LISTED.get(field, ["lora"])
    twice = [*listed, listed[0]]
    with pytest.raises(InputError, match=rf"^params.yaml: finetune.{field}: .* is not allowed; expected each once$"):
        _matrix(**{field: twice})


@pytest.mark.parametrize("field", ["methods", "seeds"])
def test_something_is_listed(field: str) -> None:
    message = rf"^params.yaml: finetune.{field}: \[\] is not allowed; expected at least one$"
    with pytest.raises(InputError, match=message):
        _matrix(**{field: []})


def test_questions_may_be_the_only_task() -> None:
    assert _matrix(classification=[]).tasks == ("squad",)
    with pytest.raises(InputError, match=r"^params.yaml: finetune.classification: \[\] is not allowed; "):
        _matrix(classification=[], squad=[])


@pytest.mark.parametrize("name", ["full, tuned", 'a"b', "a/b", "../x", ".a", "-a", "a.b", "", "mean", "health"])
@pytest.mark.parametrize("field", ["methods", "squad"])
def test_a_method_is_called_what_a_folder_and_a_column_can_hold(field: str, name: str) -> None:
    with pytest.raises(InputError, match=rf"^params.yaml: finetune.{field}: .* is not allowed; expected letters"):
        _matrix(**{field: [name]})


@pytest.mark.parametrize("seed", [-1, 2**32])
def test_a_seed_is_one_that_all_generators_take(seed: int) -> None:
    with pytest.raises(InputError, match=rf"^params.yaml: finetune.seeds: {seed} is not allowed; expected 0 to"):
        _matrix(seeds=[seed])


def test_cells_are_called_as_their_folders() -> None:
    matrix = _matrix(classification=["news"], squad=["lora"], seeds=[3])
    assert matrix.cells == {"news/full/3", "news/lora/3", "squad/lora/3"}
