from typing import Any

from retrace.report.blocks import Figure
from retrace.study.page import ALL, Drawing, curves_section

PRETRAINING = [{"epoch": str(epoch), "perplexity": str(9 - epoch)} for epoch in range(3)]


def _curve(*methods: str) -> list[dict[str, Any]]:
    figures = {"validation_loss": "0.7", "accuracy": "0.5", "f1_micro": "0.5", "f1_macro": "0.25"}
    return [{"method": method, "seed": "1", "epoch": epoch, "training_loss": "0.7" if epoch == "1" else "", **figures}
            for method in methods for epoch in ("0", "1")]  # fmt: skip


def _charts(*drawings: Drawing, pretraining: Any = None) -> dict[str, Figure]:
    charts = curves_section(drawings, pretraining).blocks
    return {chart.name: chart for chart in charts if isinstance(chart, Figure)}


def test_one_method_has_a_chart_of_losses_and_one_of_scores() -> None:
    charts = _charts(Drawing("curve-1", "Figure 1: BERT", _curve("bert"), ["training_loss", "accuracy", "f1_macro"]))
    assert list(charts) == ["curve-1-loss", "curve-1-scores"]
    assert charts["curve-1-loss"].caption == "Figure 1: BERT: loss, by epoch."
    for name, shown in (("accuracy", True), ("macro-F1", True), ("micro-F1", False), ("training loss", False)):
        assert (f">{name}<" in charts["curve-1-scores"].svg) == shown


def test_several_methods_have_a_chart_for_each_figure() -> None:
    charts = _charts(Drawing("curve-sst2", "SST-2", _curve("full", "lora"), ALL))
    assert list(charts) == [f"curve-sst2-{name}" for name in ALL]
    assert ">full<" in charts["curve-sst2-f1_micro"].svg
    assert ">lora<" in charts["curve-sst2-f1_micro"].svg


def test_what_has_no_values_is_not_drawn() -> None:
    curve = [{**row, "training_loss": ""} for row in _curve("bert")]
    assert list(_charts(Drawing("curve-1", "Figure 1", curve, ["training_loss", "accuracy"]))) == ["curve-1-scores"]


def test_pretraining_is_drawn_from_the_first_epoch_on() -> None:
    (chart,) = _charts(pretraining=PRETRAINING).values()
    assert chart.name == "curve-pretraining"
    assert ">8.0<" in chart.svg or ">8<" in chart.svg
    assert ">9.0<" not in chart.svg
    assert ">9<" not in chart.svg


def test_the_training_loss_is_drawn_by_update_where_the_report_shows_it() -> None:
    updates = {("bert", "1"): [(50, 0.7), (100, 0.6)], ("bert", "2"): [(50, 0.7), (100, 0.5)]}
    with_loss = Drawing("curve-1", "Figure 1", _curve("bert"), ["training_loss", "accuracy"], updates)
    charts = _charts(with_loss, Drawing("curve-2", "Figure 2", _curve("bert"), ["accuracy"], updates))
    assert [name for name in charts if name.endswith("updates")] == ["curve-1-updates"]
    assert charts["curve-1-updates"].caption.startswith("Figure 1: training loss by update, each point the mean")
    assert ">update<" in charts["curve-1-updates"].svg


def test_a_perplexity_too_large_to_be_written_down_is_not_drawn() -> None:
    curve = [*PRETRAINING, {"epoch": "3", "perplexity": ""}]
    assert set(_charts(pretraining=curve)) == {"curve-pretraining"}
