"""`make hub-demo`: from data of a hub to a model that others load, each step as a user types it."""

import re
import sys
from pathlib import Path

import pytest

from tests.hub import demo

pytestmark = pytest.mark.timeout(900)


@pytest.mark.thorough
def test_a_model_is_trained_published_once_and_loaded_by_its_card(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Loaded by transformers alone, which knows nothing of Retrace's attention."""
    monkeypatch.setattr(sys, "argv", ["demo", str(tmp_path / "demo")])
    demo.main()
    said = capsys.readouterr().out
    assert "# data/params.yaml: hub.sst2.repository: nyu-mll/glue@" in said
    assert "nothing was sent; --push sends this to org/reviews" in said
    ended = re.findall(r"^(published as|nothing new:) org/reviews@", said, re.MULTILINE)
    assert ended == ["published as", "nothing new:"]
    *_, label, _, last = said.splitlines()
    assert label in ("negative", "positive")
    assert re.fullmatch(r"\d+ requests, 0 not served; 0 beyond this machine", last)
