"""What looks wrong about published figures: those of the reports that are reproduced, and figures that are right."""

import pytest

from retrace.statistics.scales import SCALES
from retrace.study.published import Cell, printed, read_published
from retrace.study.verdicts import Compared, notices
from tests.toy import ROOT


def _noticed(scale: str, **figures: str) -> list[str]:
    assert scale in SCALES
    cells = [Cell("r", name, f"score.squad.full.{name}", printed(value), scale) for name, value in figures.items()]
    return notices({"t": [Compared(cell, None, "not run") for cell in cells]})


@pytest.mark.parametrize(
    ("scale", "figures", "said"),
    [
        ("fraction", {"accuracy": "0.5092", "precision": "0.5092", "recall": "1.0", "f1": "0.6748"},
         "recall without accuracy: recall 1 with accuracy 0.5092, as of one class for all"),
        ("percent", {"accuracy": "55.1", "precision": "55.1", "recall": "100.0"},
         "recall without accuracy: recall 1 with accuracy 0.551, as of one class for all"),
        ("percentage", {"exact": "0.13263", "f1": "0.001326"},
         "f1 below exact: F1 0.001326 below exact match 0.1326, which it includes"),
        ("fraction", {"exact": "0.072", "f1": "0.02748"},
         "f1 below exact: F1 2.748 below exact match 7.2, which it includes"),
        ("percent", {"exact": "0.0", "f1": "75.0"}, "f1 without exact: F1 75 with exact match 0"),
        ("fraction", {"rouge1": "754.0"}, "off scale: rouge1 754 is no fraction"),
        ("percent", {"f1_macro": "754.0"}, "off scale: f1_macro 754 is no percentage"),
    ],
)  # fmt: skip
def test_figures_that_cannot_be_right(scale: str, figures: dict[str, str], said: str) -> None:
    assert _noticed(scale, **figures) == [f"t: squad full: {said}"]


@pytest.mark.parametrize(
    ("scale", "figures"),
    [
        ("fraction", {"accuracy": "0.8451", "precision": "0.8503", "recall": "0.8445", "f1": "0.8474"}),
        ("percentage", {"exact": "7.479", "f1": "12.105"}),
        ("perplexity", {"per_token": "124.0"}),
        ("percentage", {"exact": "0.13263", "f1": "0.1326"}),  # may be equal, as they were rounded
        ("percentage", {"exact": "7", "f1": "6.9"}),
        ("score", {"bleu_length_ratio": "5.600185294"}),
    ],
)
def test_figures_that_may_be_right(scale: str, figures: dict[str, str]) -> None:
    assert _noticed(scale, **figures) == []


def test_only_figures_of_one_model_are_set_side_by_side() -> None:
    addresses = {"before.squad.full.exact": "60.0", "score.squad.full.f1": "30.0", "score.squad.lora.exact": "50.0",
                 "epoch.squad.full.1.exact": "70.0", "baseline.squad.no_answer.exact": "90.0"}  # fmt: skip
    cells = [Cell(address, "c", address, printed(value), "percentage") for address, value in addresses.items()]
    cells.append(Cell("none", "c", None, printed("1.0"), "percentage"))
    assert notices({"t": [Compared(cell, None, "not run") for cell in cells]}) == []


def test_what_is_before_training_is_called_so() -> None:
    cells = [Cell("r", name, f"before.squad.full.{name}", printed(value), "percentage")
             for name, value in (("exact", "60.0"), ("f1", "30.0"))]  # fmt: skip
    (line,) = notices({"t": [Compared(cell, None, "not run") for cell in cells]})
    assert line.startswith("t: before training squad full: f1 below exact: ")


@pytest.mark.parametrize(
    ("study", "said"),
    [
        ("bert-mlm-nsp", ["recall without accuracy: recall 1 with accuracy 0.551, as of one class for all"]),
        ("bert-wikitext2", ["recall without accuracy: recall 1 with accuracy 0.5092, as of one class for all",
                            "off scale: rouge1 754 is no fraction"]),
        ("llama-frozen", ["f1 without exact: F1 75 with exact match 0",
                          "f1 below exact: F1 2.748 below exact match 7.2, which it includes"]),
        ("plm-peft", []),
        ("roberta-small", []),
    ],
)  # fmt: skip
def test_the_studies_published_figures(study: str, said: list[str]) -> None:
    tables = read_published(ROOT / "studies" / study / "published.yaml").tables
    found = notices({table.name: [Compared(cell, None, "not run") for cell in table.cells()] for table in tables})
    assert len(found) == len(said)
    assert all(line.endswith(f": {end}") for line, end in zip(found, said, strict=True))
