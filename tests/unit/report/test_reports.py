from retrace.evaluation.records import Metrics
from retrace.report.assemble import MOST_FLAGS, flags_line


def test_the_flags_line_tells_of_so_many_flags_and_counts_the_rest() -> None:
    def said(count: int) -> str:
        flags = {f"full {seed}": {"one class only": "evidence"} for seed in range(count)}
        return flags_line(Metrics(tasks={}, flags={"squad": flags}), None)

    assert said(0) == "flags: none"
    assert said(1) == "flags: 1: squad full 0: one class only: evidence"
    assert said(MOST_FLAGS).count(";") == MOST_FLAGS - 1
    assert "more" not in said(MOST_FLAGS)
    longest = said(MOST_FLAGS + 97)
    assert longest.startswith(f"flags: {MOST_FLAGS + 97}: ")
    assert longest.endswith("; and 97 more, which the report says")
    assert longest.count(";") == MOST_FLAGS
