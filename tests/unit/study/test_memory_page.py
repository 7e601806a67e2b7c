"""How far a claim about memory holds, counted by hand."""

from retrace.report.blocks import Table
from retrace.study.sizes_page import Coefficients, Estimate, KeptFacts, MemoryFacts, memory_section


def _estimate(method: str, mebibytes: int, saved: float | None) -> Estimate:
    parts = {"weights": 2**20, "activations": (mebibytes - 1) * 2**20}
    return Estimate("m", "1 × 8", method, 10, 10, parts, saved, None, None)


def test_the_claim_is_counted_and_what_is_saved_spans_a_range() -> None:
    facts = MemoryFacts(
        formulas={"all": "16N"},
        equations=[KeptFacts(1, "y = x", "x", "4blh", 1.5, 0.0)],
        printed={"full": "1"},
        example=[Coefficients("full", 1.0, 2.0, 3.0)],
        sizes="The example.",
        example_saved={"1 × 1": 0.5, "2 × 2": 0.75},
        questionable=["Questionable."],
        claim=0.75,
        estimates=[_estimate("full", 1000, None), _estimate("lora", 400, 0.6)],
        assumed="Assumed.",
    )
    *_, estimates, by_formulas, by_estimates = memory_section(facts).blocks
    assert isinstance(estimates, Table)
    assert estimates.rows == [
        ("m", "1 × 8", "full", "10", "10", "1", "999", "1,000", "–", "–", "–"),
        ("m", "1 × 8", "lora", "10", "10", "1", "399", "400", "60.0", "–", "–"),
    ]
    assert str(by_formulas).endswith("holds in 1 of 2 cases: 50.0% to 75.0% is saved.")
    assert str(by_estimates).endswith("holds in 0 of 1 cases: 60.0% to 60.0% is saved.")
