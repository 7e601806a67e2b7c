"""The whole pipeline under real DVC at toy size: what reruns when something changes, and what does not."""

import json
import re
import shutil
import subprocess
from functools import reduce
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from ruamel.yaml import YAML

from retrace.core.files import read_json, rounded
from retrace.core.settings import DATA_PARAMS, PARAMS
from retrace.datasets.text import read_documents, text_path
from retrace.finetuning.method import FILE
from retrace.tokens.tokenizer import Vocabulary, load_tokenizer
from tests.campaigns import places
from tests.integration.conftest import PLANTED
from tests.toy import Project, holding

CELLS = {f"finetune-{task}-{method}-1" for task in ("sst2@sst2", "squad@squad") for method in ("full", "scratch")}
SOURCES = {"data/dvc.yaml:source", "data/dvc.yaml:model"}
ALL = {*SOURCES, "tokenize", "pretrain", "perplexity-eval", *CELLS, "evaluate", "report"}

METHOD = '''"""Full fine-tuning under another name."""

from retrace.methods.full import Settings, tune

__all__ = ["Settings", "tune"]
'''


def _ran(done: subprocess.CompletedProcess[str]) -> set[str]:
    """The stages that DVC ran; taking a result from its run cache is not running."""
    return set(re.findall(r"Running stage '(.+?)'", done.stdout + done.stderr))


def _changed(project: Project) -> set[str]:
    """The stages whose dependencies have changed, according to DVC."""
    return set(json.loads(project.run("dvc", "status", "--json").stdout)) & ALL


@pytest.fixture
def clone(finished: Project, tmp_path: Path) -> Project:
    """A copy of the finished project for one test to change."""
    return finished.copy(tmp_path / "clone")


def _json(project: Project, report: str) -> Any:
    return json.loads((project.folder / f"reports/{report}.json").read_text())


def _bytes(project: Project) -> dict[Path, bytes]:
    return {path: path.read_bytes() for path in (project.folder / "reports").glob("*.json")}


def _leaves(values: Any) -> int:
    return sum(map(_leaves, values.values())) if isinstance(values, dict) else 1


def test_everything_is_there(finished: Project) -> None:
    assert set(YAML(typ="safe").load(finished.folder / "dvc.lock")["stages"]) == ALL - SOURCES
    metrics, scores = _json(finished, "metrics"), _json(finished, "scores")
    assert set(metrics["sst2"]) == {"baselines", "full", "scratch", "flags"}
    assert set(metrics["squad"]["baselines"]) == {"no_answer", "word_overlap"}
    assert metrics["squad"]["full"].keys() == {"f1", "exact_match", "HasAns_f1", "NoAns_f1", "validation_loss"}
    assert metrics["sst2"]["flags"], "a toy model learns nothing"
    for task, details in scores.items():
        for method, found in details["methods"].items():
            assert metrics[task][method].items() <= rounded(found["figures"]).items()
    assert {"exact_match", "f1", "best_f1", "rougeL"} <= set(scores["squad"]["methods"]["full"]["figures"])
    headlines, perplexity = _json(finished, "perplexity"), _json(finished, "perplexity-details")
    per_token = {name: perplexity["test"][name]["perplexity_per_token"] for name in ("masked", "pseudo", "unigram")}
    assert headlines["test"] == rounded(per_token)
    for found in (perplexity["valid"][name] for name in per_token):
        assert all(ends["low"] < found[name] < ends["high"] for name, ends in found["intervals"].items())
    figures = [{key: of for key, of in found.items() if key != "flags"} for found in metrics.values()]
    assert sum(map(_leaves, [*figures, headlines["valid"], headlines["test"]])) <= 30, "one screen, with some flags"
    reports = finished.folder / "reports"
    headings = re.findall("<h2>(.+?)</h2>", (reports / "report.html").read_text())
    assert {"Results", "Pretraining", "Reviews", "Questions", "Predictions", "Data and runs"} <= set(headings)
    figures = set(re.findall(r"\((figures/.+?\.svg)\)", (reports / "report.md").read_text()))
    assert figures == {f"figures/{path.name}" for path in (reports / "figures").iterdir()}
    assert {"figures/sst2-accuracy.svg", "figures/squad-f1.svg"} <= figures
    commit = finished.run("git", "rev-parse", "HEAD~").stdout.strip()  # the run's results were committed after it
    assert _json(finished, "runs/pretrain")["origin"]["commit"] == commit
    assert {path.stem for path in (reports / "runs/stages").iterdir()} == {"tokenize", "perplexity-eval", "evaluate"}
    assert finished.run("git", "status", "--porcelain").stdout == ""
    ignoring = {path.parent.name for path in finished.folder.rglob(".gitignore")}
    assert ignoring == {".dvc", finished.folder.name}, "DVC wrote ignore files of its own"


def test_no_secret_of_the_environment_is_written_or_printed(finished: Project) -> None:
    assert holding(finished.folder, PLANTED) == []
    printed = finished.folder.with_suffix(".log").read_text()
    assert "Running stage 'pretrain'" in printed
    assert PLANTED not in printed


def test_a_stage_reads_no_params_but_those_that_dvc_compares(clone: Project) -> None:
    for name in ("tokenize", "pretrain", "perplexity-eval", *sorted(CELLS)[::2], "evaluate", "report"):
        locked = YAML(typ="safe").load(clone.folder / "dvc.lock")["stages"][name]
        for file in (PARAMS, DATA_PARAMS):
            params: dict[str, Any] = {}
            for key, value in locked["params"].get(str(file), {}).items():
                *above, last = key.split(".")
                reduce(lambda place, part: place.setdefault(part, {}), above, params)[last] = value
            YAML().dump(params, clone.folder / file)
        module, *arguments = locked["cmd"].partition("-m stages.")[2].split()
        clone.stage(module, *arguments)


def test_a_change_of_code_concerns_the_stages_that_reach_it(clone: Project) -> None:
    full = {cell for cell in CELLS if "full" in cell}
    for path, stages in {
        "retrace/evaluation/metrics/f1.py": {"evaluate", "report"},
        "retrace/evaluation/metrics/new.py": {"evaluate", "report"},  # which metrics there are is part of evaluation
        "retrace/report/page.css": {"report"},
        "retrace/finetuning/run.py": CELLS,
        "retrace/methods/full.py": full,
        "retrace/families/modernbert.py": {"data/dvc.yaml:model", "pretrain"},  # and what reads its model, see below
        "retrace/objectives/language_modelling.py": {"pretrain", "perplexity-eval"},
        "retrace/core/errors.py": ALL,
        "stages/report.py": {"report"},
    }.items():
        file = clone.folder / path
        before = file.read_text() if file.exists() else None
        file.write_text(f"{before or ''}\n")
        assert _changed(clone) == stages, path
        file.unlink() if before is None else file.write_text(before)


def test_a_change_of_settings_concerns_the_stages_that_use_them(clone: Project) -> None:
    """As docs/pipeline.md has it; the report prints all settings. What follows a stage reruns if its outputs differ."""
    sst2, squad = ({cell for cell in CELLS if task in cell} for task in ("sst2", "squad"))
    model, made, measured = {"data/dvc.yaml:model"}, {"pretrain"}, {"perplexity-eval"}
    for key, value, stages in (
        ("lr", 0.0123, made),
        ("pretrain.block_size", 32, made | measured),
        ("precision", "bf16", made | measured | CELLS),
        ("family", "bert", model | made),
        ("model.random_seed", 5, model | made),
        ("tokenizer.vocab_size", 300, {"tokenize"}),
        ("sst2.epochs", 2, sst2),
        ("squad.doc_stride", 16, squad),
        ("methods.scratch.lr_factor", 2, {cell for cell in CELLS if "scratch" in cell}),
        ("perplexity.mask_rate", 0.2, measured),
        ("metrics.every_epoch", ["accuracy"], {"evaluate"}),
        ("metrics.bootstrap_samples", 200, measured | {"evaluate"}),
        ("review.tolerance.points", 6, set()),
    ):
        before = [(clone.folder / file).read_bytes() for file in (PARAMS, DATA_PARAMS)]
        clone.set(key, value)
        assert _changed(clone) == stages | {"report"}, key
        for file, content in zip((PARAMS, DATA_PARAMS), before, strict=True):
            (clone.folder / file).write_bytes(content)


def test_a_change_of_data_concerns_the_stages_that_read_it(clone: Project) -> None:
    """A corrected label reruns no question answering. `tokenize` may read all three, and then writes what it wrote."""
    source, scored = "data/dvc.yaml:source", {"evaluate", "report"}
    for path, stages in {
        "data/text/wiki.test.tokens": {source, "tokenize", "perplexity-eval", "report"},
        "data/classification/sst2/train.jsonl": {source, "tokenize", *(c for c in CELLS if "sst2" in c), *scored},
        "data/question_answering/squad/dev.json": {source, "tokenize", *(c for c in CELLS if "squad" in c), *scored},
    }.items():
        file = clone.folder / path
        before = file.read_text()
        file.chmod(0o644)
        file.write_text(f"{before}\n")
        assert _changed(clone) == stages, path
        file.write_text(before)


def test_a_change_of_the_familys_code_concerns_what_reads_the_model(clone: Project) -> None:
    file = clone.folder / "retrace/families/modernbert.py"
    file.write_text(f"{file.read_text()}\n")
    clone.run("dvc", "repro", "pretrain")
    assert _changed(clone) == {"perplexity-eval", *CELLS, "report"}


def test_what_no_stage_reads_concerns_no_stage(clone: Project) -> None:
    """What is no code, code that no stage imports, and a method and a family that are not used."""
    core = clone.folder / "retrace/core"
    for path in (clone.folder / "retrace").rglob("*.*"):
        path.touch()
    (core / "__pycache__").mkdir()
    (core / "empty").mkdir()
    for name in ("__pycache__/errors.cpython-311.pyc", "errors.py~", ".errors.py.swp", "notes.txt"):
        (core / name).write_text("no code")
    for name in ("presets/real.yaml", "retrace/methods/new.py", "retrace/families/new.py", "retrace/cli/check.py"):
        with (clone.folder / name).open("a") as file:
            file.write("\n")
    assert _changed(clone) == set()


def test_adding_and_removing_a_method(clone: Project) -> None:
    (clone.folder / "retrace/methods/again.py").write_text(METHOD)
    clone.set("methods.again", {"lr_factor": 1})
    listed = ["full", "scratch", "again", "lora"]
    clone.set_all({"finetune.methods": listed, "finetune.squad_methods": listed})
    cells = {f"finetune-{task}-{method}-1" for task in ("sst2@sst2", "squad@squad") for method in ("again", "lora")}
    assert _ran(clone.run("dvc", "repro")) == {*cells, "evaluate", "report"}
    metrics = _json(clone, "metrics")["sst2"]
    assert metrics["again"] == metrics["full"], "the same method and seed must score the same"
    assert {path.name for path in (clone.folder / "models/squad/lora/1").glob("*.safetensors")} == {FILE}
    clone.set_all({f"finetune.{key}": ["full", "scratch"] for key in ("methods", "squad_methods")})
    assert _ran(clone.run("dvc", "repro")) <= {"evaluate", "report"}
    assert "again" not in _json(clone, "metrics")["sst2"]
    assert clone.run("dvc", "metrics", "diff").stdout == ""


def test_adding_a_task_of_each_kind(clone: Project) -> None:
    own = clone.folder / "data/own/topics"
    own.mkdir(parents=True)
    (own / "all.csv").write_text("text,term,label\n" + "".join(f"text {i},term {i},{i % 3}\n" for i in range(30)))
    (clone.folder / "data/own/newsqa").mkdir()
    shutil.copy(clone.folder / "data/question_answering/squad/train.json", clone.folder / "data/own/newsqa/all.json")
    clone.set_all({
        "classification": {"topics": {"folder": "data/own/topics", "train": "all.csv", "split": 0.8, "pair": "term"}},
        "topics": {"lr": 0.001, "epochs": 1, "batch_size": 8, "max_length": 32},
        "question_answering": {"newsqa": {"folder": "data/own/newsqa", "train": "all.json", "split": 0.75}},
        "newsqa": dict(clone.params()["squad"]),
        "finetune.tasks": ["sst2", "topics"], "finetune.questions": ["squad", "newsqa"],
    })  # fmt: skip
    before = _json(clone, "metrics")
    stages = ("classification@topics", "question-answering@newsqa", "source")  # the source looks at all of data/own
    tasks = ("sst2@topics", "squad@newsqa")
    cells = {f"finetune-{task}-{method}-1" for task in tasks for method in ("full", "scratch")}
    sources = {f"data/dvc.yaml:{stage}" for stage in stages}
    assert _ran(clone.run("dvc", "repro")) == {*sources, *cells, "evaluate", "report"}
    metrics = _json(clone, "metrics")
    assert {task: metrics[task] for task in ("sst2", "squad")} == {task: before[task] for task in ("sst2", "squad")}
    assert set(metrics["newsqa"]["baselines"]) == {"no_answer", "word_overlap"}
    assert _json(clone, "scores")["newsqa"]["methods"]["full"]["figures"]["total"] == 24
    report = (clone.folder / "reports/report.md").read_text()
    assert "| topics | dev | examples | 6 |" in report
    assert "| newsqa | dev | questions | 24 |" in report
    assert (clone.folder / "models/newsqa/full/1/model.safetensors").is_file()
    assert clone.run("python", "-m", "retrace.cli.main", "check").stdout.endswith(": ok\n")


def test_a_rerun_as_users_have_it_changes_no_metric(finished: Project, tmp_path: Path) -> None:
    """In a place that should not matter. The other tests start stages as tests/warm.py does."""
    clone = finished.copy(tmp_path / places.ODD)
    before = _bytes(clone)
    forced = ("pretrain", "finetune-squad@squad-full-1", "evaluate")
    launched = clone.with_variables(RETRACE_RUN="", PYTHONHASHSEED="4242", **places.PLACES["locale C"].variables)
    assert _ran(launched.run("dvc", "repro", "--force", "--single-item", *forced)) == set(forced)
    assert before == _bytes(clone)
    assert len(before) == 4
    assert clone.run("dvc", "metrics", "diff").stdout == ""


def test_a_name_in_the_settings_is_no_command(clone: Project) -> None:
    """`retrace check` refuses such names, but DVC does not ask it."""
    bad = "x; touch made $(touch made)"
    task = {"folder": "data/classification/sst2", "train": "train.jsonl", "dev": "dev.jsonl"}
    clone.set_all({
        "finetune.seeds": [bad], "checkpoints": {bad: {"family": "bert", "checkpoint": f"org/x@{'0' * 40}"}},
        "classification": {bad: task}, "question_answering": {bad: task}, "hub.classification": {bad: {}},
    })  # fmt: skip
    kinds = ("checkpoints", "classification", "question-answering", "hub-classification")
    stages = [*(f"data/dvc.yaml:{kind}@{bad}" for kind in kinds), f"finetune-sst2@sst2-full-{bad}"]
    done = clone.run("dvc", "repro", "--keep-going", "--single-item", *stages, code=255)
    assert done.stderr.count("exited with 2") == len(stages), done.stderr
    assert not list(clone.folder.rglob("made"))


def test_the_running_text_is_where_the_counts_say(project: Project) -> None:
    """Pretraining ends on the running text if `text_epochs` is set; in the stream, SQuAD's passages come after it."""
    project.set("tokenizer.train_on", ["text", "squad"])
    for stage in ("sources.sample", "sources.model", "tokenize"):
        project.stage(stage)
    tokenizer = load_tokenizer(project.folder / "models/tokenizer")
    stream = np.load(project.folder / "models/tokens/train.npy")
    documents = list(read_documents(text_path(project.folder / "data/text", "train")))
    counts = read_json(project.folder / "models/tokens/counts.json")["train"]
    begins = np.flatnonzero(stream == Vocabulary.of(tokenizer).begin)
    assert counts["running_tokens"] == begins[len(documents)] < len(stream)
