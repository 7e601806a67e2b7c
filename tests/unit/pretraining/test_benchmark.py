"""The lines on which the benchmark of pretraining compares the models."""

from pathlib import Path
from runpy import run_path

from retrace.core.files import write_text
from retrace.core.paths import TEXT, TOKENIZER
from retrace.datasets.text import text_path
from retrace.tokens.tokenizer import save_tokenizer
from tests import tiny
from tests.toy import ROOT


def test_lines_end_in_one_sep_whether_they_are_cut_or_not(here: Path, monkeypatch) -> None:
    monkeypatch.syspath_prepend(ROOT / "benchmarks")
    encoded_lines = run_path(str(ROOT / "benchmarks" / "pretraining.py"))["encoded_lines"]
    TOKENIZER.mkdir(parents=True)
    save_tokenizer(tiny.tiny_tokenizer(), TOKENIZER, lowercase=True)
    write_text(text_path(TEXT, "valid"), f" {tiny.TEXT[0]} \n")
    whole = tiny.tiny_tokenizer().encode(tiny.TEXT[0]).ids
    assert encoded_lines("valid", 512) == encoded_lines("valid", len(whole)) == [whole]
    assert encoded_lines("valid", 6) == [[*whole[:5], whole[-1]]]
