"""The study's formulas against its own example."""

from transformers import RobertaConfig

from retrace.estimates.published_memory import (
    EXAMPLE,
    EXAMPLE_WIDTH,
    UNIT,
    Memory,
    adapter_memory,
    adapter_parameters,
    example_memory,
    full_memory,
    parameters,
)


def test_the_studys_parameters() -> None:
    assert parameters(EXAMPLE) == 2_927_646_720
    assert adapter_parameters(EXAMPLE, EXAMPLE_WIDTH) == 59_473_920


def test_the_studys_example_to_the_printed_digits() -> None:
    full, adapter = (example_memory()[method] for method in ("full", "adapter"))
    assert [f"{full.constant / UNIT:.1e}", f"{adapter.constant / UNIT:.1e}"] == ["4.8e+04", "1.3e+04"]
    assert f"{full.per_token_pair / UNIT:.2e}" == "1.84e-02"
    assert adapter.per_token_pair == 0
    assert [f"{full.per_token / UNIT:.2f}", f"{adapter.per_token / UNIT:.2f}"] == ["8.11", "1.11"]


def test_coefficients_are_those_of_the_sum() -> None:
    one = RobertaConfig(num_hidden_layers=1, hidden_size=1, intermediate_size=1, num_attention_heads=1)
    assert full_memory(1, one) == Memory(16, 34 + 8, 9)
    assert full_memory(0, one).at(1, 1) == 34 + 9 + 8
    assert full_memory(0, one).at(2, 3) == 2 * 3 * (34 + 8) + 2 * 9 * 9
    assert adapter_memory(1, 1, one, 1).at(1, 1) == 4 + 16 + 2 * (4 + 8)
