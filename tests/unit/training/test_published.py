"""The study's formulas against its own example."""

import pytest

from stages.training.published import Shape, adapter_bytes, adapter_parameters, full_bytes, parameters

EXAMPLE = Shape(layers=64, hidden=1920, inner=7680, heads=32)
ROUNDED = 3 * 10**9  # the study's N; its own formula gives 2.93e9
MEGA = 10**6  # its "MiB"


def test_the_studys_parameters() -> None:
    assert parameters(EXAMPLE, 50_000) == 2_927_646_720
    assert adapter_parameters(EXAMPLE, 120) == 59_473_920


@pytest.mark.parametrize(("batch", "length"), [(1, 1), (16, 128), (4, 512)])
def test_the_studys_example_of_full_tuning(batch: int, length: int) -> None:
    stated = 4.8e4 + 1.84e-2 * batch * length**2 + 8.11 * batch * length
    assert full_bytes(ROUNDED, EXAMPLE, batch, length) / MEGA == pytest.approx(stated, rel=2e-3)


@pytest.mark.parametrize(("batch", "length"), [(1, 1), (16, 128), (4, 512)])
def test_the_studys_example_of_adapters(batch: int, length: int) -> None:
    stated = 1.3e4 + 1.11 * batch * length
    found = adapter_bytes(ROUNDED, adapter_parameters(EXAMPLE, 120), EXAMPLE, 120, batch, length)
    assert found / MEGA == pytest.approx(stated, rel=5e-3)


def test_coefficients_are_those_of_the_sum() -> None:
    one = Shape(layers=1, hidden=1, inner=1, heads=1)
    assert full_bytes(0, one, 1, 1) == 34 + 9 + 8
    assert full_bytes(0, one, 2, 3) == 2 * 3 * (34 + 8) + 2 * 9 * 9
    assert adapter_bytes(1, 1, one, 1, 1, 1) == 4 + 16 + 2 * (4 + 8)
