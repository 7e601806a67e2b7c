from typing import Any

import pytest

from retrace.core.errors import InputError
from retrace.results.grid import Grid

LISTED = {"tasks": ["sst2", "news"], "methods": ["full", "lora"], "squad_methods": ["full", "lora"], "seeds": [1, 2]}


def _grid(**more: Any) -> Grid:
    return Grid.read({"finetune": LISTED | more})


def test_questions_have_methods_of_their_own_or_none() -> None:
    grid = _grid(squad_methods=["lora", "writer"])
    assert (grid.methods_of("sst2"), grid.methods_of("squad")) == (("full", "lora"), ("lora", "writer"))
    assert grid.every_method == ("full", "lora", "writer")
    assert _grid(squad_methods=[]).all_tasks == ("sst2", "news")
    assert _grid(tasks=[]).all_tasks == ("squad",)


def test_what_is_listed_wrongly_is_named() -> None:
    """tests/campaigns has lists that are empty, and a seed below 0."""
    for listed, message in (
        *(({field: [*LISTED[field], LISTED[field][0]]}, rf"{field}: .*; expected each once$") for field in LISTED),
        ({"questions": ["squad", "news"]}, r"questions: \['news'\] is not allowed; finetune.tasks has it too"),
        ({"seeds": [2**32]}, r"seeds\[0\]: 4294967296 is not allowed; expected a whole number from 0 to"),
    ):
        with pytest.raises(InputError, match=rf"^params.yaml: finetune.{message}"):
            _grid(**listed)


@pytest.mark.parametrize(
    "name", ["full, tuned", 'a"b', "a/b", ".a", "-a", "a.b", "", "mean", "flags", "methods", "tie"]
)
@pytest.mark.parametrize("field", ["methods", "squad_methods"])
def test_a_method_is_called_what_a_folder_and_a_column_can_hold(field: str, name: str) -> None:
    with pytest.raises(InputError, match=rf"^params.yaml: finetune.{field}: .* is not allowed; expected letters"):
        _grid(**{field: [name]})


def test_cells_are_called_as_their_folders() -> None:
    grid = _grid(tasks=["news"], squad_methods=["lora"], seeds=[3])
    assert [str(cell.path) for cell in grid.cells] == ["news/full/3", "news/lora/3", "squad/lora/3"]
