from retrace.evaluation.records import Metrics
from retrace.report.assemble import MOST_FLAGS, health_line


def test_the_health_line_tells_of_so_many_flags_and_counts_the_rest() -> None:
    def said(count: int) -> str:
        flags = {f"full {seed}": {"one class only": "evidence"} for seed in range(count)}
        return health_line(Metrics(tasks={}, flags={"squad": flags}), None)

    assert said(0) == "health: no flags"
    assert said(1) == "health: 1 flag: squad full 0: one class only: evidence"
    assert said(MOST_FLAGS).count(";") == MOST_FLAGS - 1
    assert "more" not in said(MOST_FLAGS)
    longest = said(MOST_FLAGS + 97)
    assert longest.startswith(f"health: {MOST_FLAGS + 97} flags: ")
    assert longest.endswith("; and 97 more, which the report says")
    assert longest.count(";") == MOST_FLAGS
