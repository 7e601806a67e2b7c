from typing import Any

import pytest

from retrace.core.errors import InputError
from retrace.files.formats import labels_of


@pytest.mark.parametrize("label", [None, float("nan"), True, [1], {"a": 1}, 0.5])
def test_what_names_no_class_is_refused_by_its_row(label: Any) -> None:
    with pytest.raises(InputError) as caught:
        labels_of([("f.jsonl:1", {"label": "a"}), ("f.jsonl:2", {"label": label})], "label")
    assert str(caught.value) == f"f.jsonl:2: label {label!r} is not allowed; expected text or a whole number"


def test_a_row_without_the_column_or_with_nothing_in_it() -> None:
    for cells, said in (({"text": "a"}, "no 'label'; there is: text"), ({"label": " "}, "label ' ' is not allowed")):
        with pytest.raises(InputError, match=f"f:1: {said}"):
            labels_of([("f:1", cells)], "label")


def test_labels_are_text_however_they_are_written() -> None:
    rows = [("f", {"label": label}) for label in ("None", " a ", 1, 1.0, -2.0)]
    assert labels_of(rows, "label") == ["None", "a", "1", "1", "-2"]
