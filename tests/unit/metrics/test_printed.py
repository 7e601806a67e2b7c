import pytest

from stages.metrics.printed import Printed, printed


@pytest.mark.parametrize(
    ("cell", "expected"),
    [
        (None, None),
        (0.5092, Printed(0.5092)),
        ("77.41 ± 2.81", Printed(77.41, 2.81, 2)),
        ("77.40±2.81", Printed(77.4, 2.81, 2)),
        ("1.3e4", Printed(13000.0, None, -3)),
        ("1.84e-2", Printed(0.0184, None, 4)),
        ("-7", Printed(-7.0, None, 0)),
    ],
)
def test_numbers_and_text(cell: float | str | None, expected: Printed | None) -> None:
    assert printed(cell) == expected


@pytest.mark.parametrize("text", ["", "about 7", "7 %", "1,234", "nan", "7 ± ", "± 2"])
def test_what_is_no_figure_is_named(text: str) -> None:
    with pytest.raises(ValueError, match=r"is not allowed; expected a number, or text such as 77\.41 ± "):
        printed(text)


@pytest.mark.parametrize(
    ("cell", "value", "digits", "is_rounded"),
    [
        ("1.3e4", 12_952.0, 0, True),
        ("1.3e4", 12_499.0, 0, False),
        ("1.84e-2", 0.018444, 0, True),
        ("0.50", 0.504, 4, True),
        (0.5, 0.504, 4, False),  # it may have been 0.5000
        (0.473, 0.4732, 3, True),
        (0.473, 0.4732, 4, False),
        (0.00416, 0.00423, 4, False),  # more digits than the scale has
        (109_482_240.0, 109_482_240.0, 0, True),
        (109_482_240.0, 109_482_241.0, 0, False),
        (6.803596311961173e-233, 0.0, 4, False),
    ],
)
def test_equal_to_the_last_printed_digit(cell: float | str, value: float, digits: int, is_rounded: bool) -> None:
    found = printed(cell)
    assert found is not None
    assert found.is_rounded(value, digits) == is_rounded
