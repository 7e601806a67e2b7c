"""What was run on what: times, sizes, settings and provenance, by hand."""

from typing import Any

import pytest

from retrace.core.records import Origin, RunRecord, StageRecord
from retrace.evaluation.records import Figures
from retrace.report.blocks import NOTHING, Fold, Panels, Section, Table
from retrace.report.names import duration, with_real_thresholds
from retrace.report.page import as_markdown
from retrace.report.results import seconds_of, shares_of, thinned
from retrace.report.runs import commit_text, origin_fold, settings_fold, time_fold
from retrace.report.summary import run_facts
from tests.study import RUN

GRID: dict[str, Any] = {
    "tasks": ["sst2"], "methods": ["full", "lora"], "questions": ["squad"], "squad_methods": ["full"], "seeds": [1, 2],
}  # fmt: skip
PARAMS: dict[str, Any] = {
    "data": "sample", "family": "bert", "model": {"layers": 4, "hidden_size": 128, "checkpoint": None},
    "finetune": GRID, "methods": {"full": {}, "lora": {"rank": 8}, "frozen": {"lr_factor": 5}},
    "sample": {"seed": 1}, "files": {"text": "data/own/text"}, "hub": {}, "classification": {}, "checkpoints": {},
}  # fmt: skip


def _run(seconds: float, trained: int = 8, **more: Any) -> RunRecord:
    return RUN.model_copy(update={"seconds": seconds, "trained_parameters": trained, **more})


RUNS = {
    "pretrain": _run(120.0, tokens=7_340_032, parameters=1_036_000),
    "sst2 full 1": _run(10.0), "sst2 full 2": _run(20.0), "squad full 1": _run(100.0), "squad full 2": _run(200.0),
    "sst2 lora 1": _run(6.0, trained=1), "sst2 lora 2": _run(8.0, trained=2),
}  # fmt: skip
PYTHON = {"python": "3.11"}
HERE = Origin(commit="a" * 40, clean=True, date="2026-11-23", machine="two cores", versions=PYTHON)


def _tables(fold: Fold) -> list[Table]:
    return [block for block in fold.blocks if isinstance(block, Table)]


def test_a_methods_seconds_are_summed_over_tasks_and_averaged_over_seeds() -> None:
    """(10 + 100, 20 + 200) and (6, 8); pretraining is no method's."""
    assert seconds_of(RUNS) == {"full": 165.0, "lora": 7.0}


def test_a_methods_share_of_weights_is_the_largest_of_any_run() -> None:
    assert shares_of(RUNS) == {"full": 100.0, "lora": 25.0}


@pytest.mark.parametrize(
    ("most", "expected"),
    [
        (9, [(1, 10), (2, 20), (3, 30), (4, 40), (5, 60)]),
        (5, [(1, 10), (2, 20), (3, 30), (4, 40), (5, 60)]),
        (4, [(1.5, 15), (3.5, 35), (5, 60)]),
        (2, [(2, 20), (4.5, 50)]),
        (1, [(3, 32)]),
    ],
)
def test_a_thinned_curve_has_means_of_neighbours(most: int, expected: list[tuple[float, float]]) -> None:
    assert thinned([(1, 10), (2, 20), (3, 30), (4, 40), (5, 60)], most) == expected
    assert thinned([], most) == []


@pytest.mark.parametrize(
    ("seconds", "said"),
    [
        (89.4, "89 s"),
        (90, "2 min"),
        (5399, "90 min"),
        (5400, "1.5 h"),
    ],
)
def test_durations_are_in_the_unit_that_reads_best(seconds: float, said: str) -> None:
    assert duration(seconds) == said


def test_a_commit_is_short_and_says_whether_it_is_all() -> None:
    assert commit_text(HERE) == "a" * 12
    assert commit_text(HERE.model_copy(update={"clean": False})) == "aaaaaaaaaaaa (with changes)"
    assert commit_text(HERE.model_copy(update={"commit": None})) == NOTHING


def test_facts_of_a_run() -> None:
    facts = run_facts(PARAMS, RUNS, 1_036_000)
    assert facts["Model"] == "bert, 4 layers of 128"
    assert facts["Training"] == "8 min"  # 120 + 10 + 20 + 100 + 200 + 6 + 8 = 464 seconds
    assert (facts["Seeds"], facts["Precision"]) == ("2", "fp32, 1 process")
    assert (facts["Parameters"], facts["Tokens seen"]) == ("1.04 M", "7.34 M")
    two = {**RUNS, "pretrain": _run(120.0, processes=2)}
    assert run_facts(PARAMS, two, 8)["Precision"] == "fp32, 2 processes"
    older = {**RUNS, "sst2 full 1": _run(10.0, origin=HERE)}
    assert run_facts(PARAMS, older, 8)["Commit"] == f"{'c' * 12} and {'a' * 12}", "results of two commits are mixed"
    gpu = _run(10.0, precision="bf16", origin=RUN.origin.model_copy(update={"machine": "one GPU"}))
    mixed = run_facts(PARAMS, {**two, "sst2 full 1": gpu, "sst2 full 2": gpu}, 8)
    assert (mixed["Machine"], mixed["Precision"]) == ("two cores and one GPU", "fp32 and bf16, 2 processes")
    given = PARAMS["model"] | {"checkpoint": f"org/x@{'0123456789' * 4}"}
    for model, said in ((given, "from"), (given | {"random_seed": 0}, "random weights of the sizes of")):
        found = run_facts({**PARAMS, "model": model}, RUNS, 8)["Model"]
        assert found == f"bert, {said} org/x@012345678901", "the sizes in params.yaml are not in force"
    one = {**PARAMS, "model": {**PARAMS["model"], "layers": 1}}
    assert run_facts(one, RUNS, 8)["Model"] == "bert, 1 layer of 128"


@pytest.mark.parametrize(
    ("machine", "said"),
    [
        ("Intel(R) Xeon(R) Processor, 4 cores", "Intel Xeon, 4 cores"),
        ("Intel(R) Core(TM) i7-8565U CPU @ 1.80GHz, 8 cores", "Intel Core i7-8565U, 8 cores"),
        ("AMD EPYC 7B13 64-Core Processor, 2 cores", "AMD EPYC 7B13 64-Core, 2 cores"),
        ("QEMU Virtual CPU version 2.5+, 1 cores", "QEMU Virtual CPU version 2.5+, 1 cores"),
        ("NVIDIA H200", "NVIDIA H200"),
    ],
)
def test_a_processor_is_named_without_trade_marks_and_speed(machine: str, said: str) -> None:
    origin = RUN.origin.model_copy(update={"machine": machine})
    assert run_facts(PARAMS, {"pretrain": _run(1.0, origin=origin)}, 8)["Machine"] == said


def test_settings_of_other_methods_and_data_sources_are_left_out() -> None:
    (table,) = _tables(settings_fold(PARAMS))
    shown = {str(key): str(value) for key, value in table.rows}
    assert {"family", "data", "sample.seed", "methods.lora.rank", "finetune.seeds"} <= shown.keys()
    assert not any(key.startswith(("methods.frozen", "files", "hub", "classification")) for key in shown)
    assert shown["finetune.seeds"] == "1, 2"
    (table,) = _tables(settings_fold(PARAMS | {"finetune": GRID | {"tasks": []}}))
    assert not any(str(key).startswith("methods.lora") for key, _ in table.rows), "squad is run with full alone"


def test_settings_of_further_tasks_that_are_listed_are_shown() -> None:
    tasks = {name: {"split": 0.7} for name in ("mood", "other")}
    hub = {"text": {"config": "c"}, "classification": {"news": {"split": 0.9}, "old": {"split": 0.8}}}
    params = PARAMS | {"classification": tasks, "hub": hub}
    grid = {"methods": ["full"], "squad_methods": ["full"], "seeds": [1]}
    for listed, keys in ((["mood", "news"], {"hub.classification.news.split"}), (["mood"], set())):
        for data, more in (("sample", set()), ("hub", {"hub.text.config"})):
            (table,) = _tables(settings_fold(params | {"data": data, "finetune": grid | {"tasks": listed}}))
            found = {str(key) for key, _ in table.rows if str(key).startswith(("classification", "hub"))}
            assert found == {"classification.mood.split"} | keys | more


def test_time_is_summed_over_seeds_beside_the_stages() -> None:
    """Stages before pretraining come first, those after it last."""
    records = {name: StageRecord(seconds=of, origin=HERE) for name, of in (("tokenize", 8.0), ("evaluate", 60.0))}
    fold = time_fold(RUNS, records, PARAMS)
    assert fold.gist == "9 min"  # 464 + 8 + 60 = 532 seconds
    (panels,) = (block for block in fold.blocks if isinstance(block, Panels))
    (panel,) = panels.panels
    assert panel.label == (
        "Seconds: tokenize 8, pretraining 120, Reviews, Full 30, Questions, Full 300, Reviews, LoRA 14, evaluate 60"
    )


def test_provenance_names_every_version_and_digest() -> None:
    """A version that a result does not have is left open."""
    other = HERE.model_copy(update={"machine": "one GPU", "versions": {**PYTHON, "torch": "2.13.0"}})
    fold = origin_fold({"pretrain": HERE, "sst2 full 1": other, "sst2 full 2": RUN.origin}, {"m": "0123"})
    assert fold.gist == f"commit {'a' * 12} and {'c' * 12}"
    page = as_markdown("T", [Section("S", [fold])])
    assert "| result | commit | date | machine | python | torch |" in page
    assert f"| pretrain | {'a' * 12} | 2026-11-23 | two cores | 3.11 | {NOTHING} |" in page
    assert "| one GPU | 3.11 | 2.13.0 |" in page
    assert "| m | 0123 |" in page


def test_files_are_restored_from_the_commit_that_has_their_dvc_lock_and_not_from_that_of_the_code() -> None:
    """At the commit that a stage ran from, dvc.lock names the files of the run before."""
    note, *_ = origin_fold({"pretrain": HERE}, {}).blocks
    assert str(note).startswith("The commits are those of the code.")
    assert "check out that later commit and run dvc checkout" in str(note)


def test_a_threshold_of_a_metric_of_ones_own_is_shown() -> None:
    """Only those of SQuAD's script are left out, where never answering scores best."""
    figures: Figures = {"best_accuracy": 0.9, "best_accuracy_thresh": 0.0, "odds_thresh": 0.0}
    assert with_real_thresholds(figures, [figures]) == figures
