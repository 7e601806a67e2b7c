from typing import Any

import pytest

from retrace.study.published import printed


@pytest.mark.parametrize(
    ("cell", "expected"),
    [
        ("0.5092", {"value": 0.5092, "digits": 4}),
        ("0.50", {"value": 0.5, "digits": 2}),
        ("109,482,240", {"value": 109_482_240.0, "digits": 0}),
        ("0.13263%", {"value": 0.13263, "digits": 5}),
        ("77.41 ± 2.81", {"value": 77.41, "sd": 2.81, "digits": 2, "end": None}),
        ("77.40±2.81", {"value": 77.4, "sd": 2.81, "digits": 2}),
        ("1.3e4", {"value": 13_000.0, "digits": -3}),
        ("1.84e-2", {"value": 0.0184, "digits": 4}),
        ("1.84 × 10⁻²", {"value": 0.0184, "digits": 4}),
        ("2.11E-05", {"value": 2.11e-05, "digits": 7}),
        ("110M", {"value": 110e6, "digits": -6}),
        ("1.23B", {"value": 1.23e9, "digits": -7}),
        ("0.80-0.85", {"value": 0.8, "end": 0.85, "digits": 2, "sd": None}),
        ("124 to 99", {"value": 124.0, "end": 99.0, "digits": 0}),
        ("-7", {"value": -7.0, "end": None}),
        ("1 hour, 46 minutes and 38 seconds", {"value": 6398.0, "digits": 0}),
    ],
)
def test_a_text_keeps_its_digits(cell: str, expected: dict[str, Any]) -> None:
    found = printed(cell)
    assert found is not None
    assert found.text == cell
    assert {name: getattr(found, name) for name in expected} == pytest.approx(expected)


def test_no_figure() -> None:
    assert printed(None) is None


@pytest.mark.parametrize("text", ["", "about 7", "7 %", "1,23", "nan", "7 ± ", "± 2", "1-2-3", "an hour"])
def test_what_is_no_figure_is_named(text: str) -> None:
    with pytest.raises(ValueError, match=r"is not allowed; expected a figure as it was printed, such as 0\.50 or 77"):
        printed(text)


@pytest.mark.parametrize(
    ("cell", "value", "shown"),
    [
        ("0.721894", 0.5, "0.500000"),
        ("111", 47.28, "47"),
        ("51.8", 51.83, "51.8"),
        ("109,482,240", 109_482_240.0, "109,482,240"),
        ("110M", 109_482_240.0, "109,482,240"),
        ("0.13263%", 12.3, "12.30000%"),
        ("2.11E-05", 0.0123, "1.23E-02"),
        ("6.803596311961173e-233", 0.0, "0"),
        ("1.84 × 10⁻²", 0.018432, "1.84 × 10⁻²"),
        ("4.8 × 10⁴", 48_000.0, "4.8 × 10⁴"),
        ("0.62", 0.0001, "0.0001"),  # what is not 0 is not shown as 0
        ("0.62", 1.2e-7, "1.2e-07"),
    ],
)
def test_another_figure_has_as_many_digits(cell: str, value: float, shown: str) -> None:
    found = printed(cell)
    assert found is not None
    assert found.form.text(value) == shown


def test_spread_and_interval_have_as_many_digits_too() -> None:
    found = printed("77.4")
    assert found is not None
    assert found.form.text(80, 1.25, {"low": 78.25, "high": 82}) == "80.0 ± 1.2 (78.2 – 82.0)"
