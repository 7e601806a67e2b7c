from typing import Any

import pytest

from retrace.core.errors import InputError
from retrace.core.settings import build
from retrace.results.grid import Grid

LISTED = {"tasks": ["sst2", "news"], "methods": ["full", "lora"], "squad_methods": ["full", "lora"], "seeds": [1, 2]}


def _grid(**more: Any) -> Grid:
    return build(Grid, {"finetune": LISTED | more}, "finetune")


def test_questions_have_methods_of_their_own() -> None:
    grid = _grid(squad_methods=["lora", "writer"])
    assert grid.methods_of("squad") == ("lora", "writer")
    assert grid.methods_of("sst2") == ("full", "lora")
    assert grid.every_method == ("full", "lora", "writer")


def test_questions_are_left_out() -> None:
    assert _grid(squad_methods=[]).all_tasks == ("sst2", "news")


@pytest.mark.parametrize("field", ["tasks", "methods", "seeds", "squad_methods"])
def test_nothing_is_listed_twice(field: str) -> None:
    listed = LISTED[field]
    twice = [*listed, listed[0]]
    with pytest.raises(InputError, match=rf"^params.yaml: finetune.{field}: .* is not allowed; expected each once$"):
        _grid(**{field: twice})


@pytest.mark.parametrize("field", ["methods", "seeds"])
def test_something_is_listed(field: str) -> None:
    message = rf"^params.yaml: finetune.{field}: \[\] is not allowed; expected a list of 1 or more "
    with pytest.raises(InputError, match=message):
        _grid(**{field: []})


def test_questions_may_be_the_only_task() -> None:
    assert _grid(tasks=[]).all_tasks == ("squad",)
    with pytest.raises(InputError, match=r"^params.yaml: finetune.tasks: \[\] is not allowed; "):
        _grid(tasks=[], squad_methods=[])


@pytest.mark.parametrize("name", ["full, tuned", 'a"b', "a/b", "../x", ".a", "-a", "a.b", "", "mean", "flags"])
@pytest.mark.parametrize("field", ["methods", "squad_methods"])
def test_a_method_is_called_what_a_folder_and_a_column_can_hold(field: str, name: str) -> None:
    with pytest.raises(InputError, match=rf"^params.yaml: finetune.{field}: .* is not allowed; expected letters"):
        _grid(**{field: [name]})


@pytest.mark.parametrize("seed", [-1, 2**32])
def test_a_seed_is_one_that_all_generators_take(seed: int) -> None:
    with pytest.raises(
        InputError,
        match=rf"^params.yaml: finetune.seeds\[0\]: {seed} is not allowed; expected a whole number from 0 to",
    ):
        _grid(seeds=[seed])


def test_cells_are_called_as_their_folders() -> None:
    grid = _grid(tasks=["news"], squad_methods=["lora"], seeds=[3])
    assert grid.cells == {"news/full/3", "news/lora/3", "squad/lora/3"}
