"""Benchmarks that run DVC or stages compare what they say they compare."""

import json
import sys
from importlib import import_module
from pathlib import Path

from retrace.core.files import read_json, write_text
from tests.hub import LocalHub
from tests.toy import Project


def test_no_side_of_the_benchmark_of_a_repro_without_work_reports_to_dvc(tmp_path: Path, monkeypatch) -> None:
    """The project does not, and a new repository would."""
    noop = import_module("noop")
    folders = pipeline, reports = tmp_path / "pipeline", tmp_path / "reports"
    for folder in folders:
        folder.mkdir()
    monkeypatch.setenv("PATH", str(Path(sys.executable).parent), prepend=":")
    noop.make_empty(pipeline, 1)
    monkeypatch.chdir(pipeline)
    monkeypatch.setenv("DVC_NO_ANALYTICS", "")
    monkeypatch.setenv("DVC_DAEMON", "1")  # reports stay where they are written, as no process is started to send them
    monkeypatch.setenv("TMPDIR", str(reports))
    monkeypatch.setattr(noop, "ROUNDS", 1)
    noop.main()
    assert list(reports.iterdir()) == []


def test_the_hub_has_the_words_of_the_files(project: Project, hub: LocalHub, tmp_path: Path) -> None:
    """With WikiText-2's `<unk>`, which its raw config lacks where it is published, but not here."""
    own, benchmark = project.folder / "data/own", import_module("hub")
    for part in ("train", "valid", "test"):
        write_text(own / f"wikitext-2/wiki.{part}.tokens", f" \n = Ada = \n \n Ada did <unk> in {part} . \n")
    asked = {"id": "q", "question": "Who?", "answers": [{"text": "Ada", "answer_start": 0}]}
    for part in ("train", "dev"):
        write_text(own / f"sst2/{part}.tsv", f"sentence\tlabel\ngood {part}\t1\nbad {part}\t0\n")
        paragraphs = [{"context": f"Ada did {part}.", "qas": [asked]}]
        write_text(own / f"squad/{part}-v2.0.json", json.dumps({"data": [{"title": "T", "paragraphs": paragraphs}]}))
    copy, read = benchmark.prepared(project.folder, hub, tmp_path / "made"), []
    for source in ("files", "hub"):
        benchmark.fetch(copy, source)
        read.append(read_json(copy.folder / "data/text/card.json")["parts"])
    assert read[0] == read[1]
