"""Models as others get them: published to the local hub by `retrace publish`, loaded by the lines of their cards."""

import json
import sys
from collections.abc import Sequence
from dataclasses import replace
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest
import yaml
from huggingface_hub import ModelCard

from retrace.core.files import SUMS
from tests.commands import Done
from tests.hub import READ_TOKEN, WRITE_TOKEN, Cut, LocalHub, Status
from tests.toy import Project, copy_project, holding

pytestmark = [pytest.mark.slow, pytest.mark.timeout(900)]

METHODS = ("full", "scratch", "frozen", "lora", "adapter")
PARTS = ("lora", "adapter")  # of which the trained part may be published alone
EVEN_IF = tuple(f"--even-if={doubt}" for doubt in ("unlearned", "stale", "dirty"))
CASES: dict[str, tuple[dict[str, Any], Sequence[str], Sequence[str]]] = {  # settings, tasks, methods
    "classes": ({}, ("sst2",), METHODS),
    "spans with question matches": ({"squad.question_match": True}, ("squad",), ("full", "lora")),
    "classes and spans by a causal family": ({"family": "llama"}, ("sst2", "squad"), ("frozen", "adapter")),
    "written answers": ({"family": "llama", "squad.answers": "generative"}, ("squad",), ("full", "lora")),
}


def _python(project: Project, *arguments: str) -> list[dict[str, Any]]:
    """The lines of json that a module prints."""
    return [json.loads(line) for line in project.run(sys.executable, "-m", *arguments).stdout.splitlines()]


def _run(project: Project, *commands: Sequence[str]) -> list[Done]:
    return [Done(**each) for each in _python(project, "tests.commands", json.dumps(commands))]


def _train(project: Project, tasks: Sequence[str], methods: Sequence[str]) -> None:
    project.set_all({"finetune.methods": list(methods), "finetune.squad_methods": list(methods) * ("squad" in tasks)})
    project.set("metrics.bootstrap_samples", 200)
    if "sst2" not in tasks:
        project.set("finetune.tasks", [])
    cells = [(f"finetune_{task}", "--method", method, "--seed", "1") for task in tasks for method in methods]
    stages = [
        ("sources.sample",),
        ("sources.model",),
        ("tokenize",),
        ("pretrain",),
        ("perplexity_eval",),
        *cells,
        ("evaluate",),
    ]
    for stage, done in zip(stages, _run(project, *stages), strict=True):
        assert done.code == 0, f"{stage}: {done.err}"


def _publish(
    project: Project, hub: LocalHub, home: Path, *commands: Sequence[str], token: str | None = WRITE_TOKEN
) -> list[Done]:
    user = replace(project, variables=hub.environment(home, token))
    return _run(user, *(("retrace", "publish", *command) for command in commands))


@pytest.mark.parametrize("case", CASES)
def test_a_published_model_predicts_what_was_recorded(tmp_path: Path, hub: LocalHub, case: str) -> None:
    """Up to rounding, for each method and task, whole or as an adapter onto the published pretrained model."""
    settings, tasks, methods = CASES[case]
    project = copy_project(tmp_path / "project", git=True)
    for key, value in settings.items():
        project.set(key, value)
    _train(project, tasks, methods)
    cells = [(task, method) for task in tasks for method in methods]
    commands = [(f"org/{t}-{m}", "--task", t, "--method", m, "--push", *EVEN_IF) for t, m in cells]
    first = _publish(project, hub, tmp_path / "a", ("org/pretrained", "--push", *EVEN_IF), *commands)
    assert [done.err for done in first if done.code] == []
    base = first[0].out.split()[-1]
    assert base == f"org/pretrained@{hub.commits('model', 'org/pretrained')[0]}"
    alone = [(task, method) for task, method in cells if method in PARTS]
    more = [(f"org/{t}-{m}-alone", "--task", t, "--method", m, "--base", base, "--push", *EVEN_IF) for t, m in alone]
    assert [done.err for done in _publish(project, hub, tmp_path / "b", *more) if done.code] == []
    for task, method in alone:
        whole, part = (hub.files("model", f"org/{task}-{method}{kind}") for kind in ("", "-alone"))
        assert "model.safetensors" not in {Path(name).name for name in part}
        assert {Path(name).name for name in whole} >= {"model.safetensors", "config.json"}
    pairs = [x for t, m in cells for x in (f"org/{t}-{m}", f"{t}/{m}/1")]
    pairs += [x for t, m in alone for x in (f"org/{t}-{m}-alone", f"{t}/{m}/1")]
    found = _python(replace(project, variables=hub.environment(tmp_path / "c")), "tests.reloading", *pairs)
    assert [each["repository"] for each in found] == pairs[::2]
    assert [each for each in found if not (each["equal"] and each["same_tokens"] and each["rows"])] == []


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Project:
    """A project with one tuned model, committed, whose outputs are those of dvc.lock."""
    project = copy_project(tmp_path_factory.mktemp("finished") / "project", git=True)
    _train(project, ("sst2",), ("full",))
    project.run("dvc", "commit", "-f", "--with-deps", "evaluate", "perplexity-eval")
    project.commit("run")
    return project


def test_what_should_not_be_published_is_refused_in_one_line(finished: Project, hub: LocalHub, tmp_path: Path) -> None:
    cell = ("--task", "sst2", "--push")
    (plain,) = _publish(finished, hub, tmp_path / "a", ("org/x", *cell))
    assert plain.code == 2
    assert plain.err.startswith("error: sst2 full 1 has learned nothing: ")
    assert plain.err.endswith("; --even-if unlearned publishes it anyway\n")
    config = finished.folder / "models/sst2/full/1/config.json"
    sums = config.with_name(SUMS)
    kept = {path: path.read_bytes() for path in (config, sums)}
    (finished.folder / "note.txt").write_text("new")
    config.write_bytes(kept[config] + b"\n")
    before, now = (sha256(content).hexdigest().encode() for content in (kept[config], config.read_bytes()))
    sums.write_bytes(kept[sums].replace(before, now))  # of another run, not damaged
    try:
        commands = [("org/x", *cell), ("org/x", *cell, "--even-if", "dirty"), ("org/x", "--task", "sst2")]
        dirty, stale, dry = _publish(finished, hub, tmp_path / "a", *commands)
        size = finished.params()["tokenizer"]["vocab_size"]
        finished.set("tokenizer.vocab_size", size + 1)  # which the card would name, and the model never saw
        (early,) = _publish(finished, hub, tmp_path / "a", ("org/x", "--push", "--even-if", "dirty"))
        finished.set("tokenizer.vocab_size", size)
    finally:
        (finished.folder / "note.txt").unlink()
        for path, content in kept.items():
            path.write_bytes(content)
    assert dirty.err == (
        "error: the model would belong to no commit: not committed: note.txt; --even-if dirty publishes it anyway\n"
    )
    assert stale.err == (
        "error: finetune-sst2@sst2-full-1: out of date by dvc.lock; run dvc repro and commit it; "
        "--even-if stale publishes it anyway\n"
    )
    assert "sst2-full-1, tokenize: out of date by dvc.lock; " in early.err
    assert dry.code == 0
    assert [line.split(":")[0] for line in dry.out.splitlines()].count("would be refused") == 3
    assert hub.requests == []


def test_a_dry_run_lists_what_would_go_and_sends_nothing(finished: Project, hub: LocalHub, tmp_path: Path) -> None:
    (done,) = _publish(finished, hub, tmp_path / "a", ("org/x", "--task", "sst2"), token=None)
    assert done.code == 0, done.err
    prepared = finished.folder / ".retrace/publish/sst2/full/1"
    rows = {row[0]: row[1] for row in map(str.split, done.out.splitlines()) if len(row) == 2}
    files = {path.name: f"{path.stat().st_size:,}" for path in prepared.iterdir()}
    assert files.items() <= rows.items()
    assert set(files) == {
        "README.md", "config.json", "metrics.json", "model.safetensors", "tokenizer.json", "tokenizer_config.json",
    }  # fmt: skip
    assert "nothing was sent; --push sends this to org/x" in done.out
    assert hub.requests == []


def test_the_same_thing_twice_makes_no_commit(finished: Project, hub: LocalHub, tmp_path: Path) -> None:
    command = ("org/x", "--task", "sst2", "--push", "--even-if", "unlearned")
    first, again, private = _publish(finished, hub, tmp_path / "a", command, command, (*command, "--private"))
    made = hub.commits("model", "org/x")
    assert first.out.splitlines()[-1] == f"published as org/x@{made[0]}"
    assert again.out.splitlines()[-1] == f"nothing new: org/x@{made[0]} has all of this already"
    assert private.err == "error: org/x: the repository exists and is public; make it private at the hub first\n"
    hub.add("model", "org/x", {"adapter_model.safetensors": b"of before", "LICENSE": b"kept"})
    other, branch = _publish(finished, hub, tmp_path / "b", command, (*command, "--revision", "trial", "--private"))
    assert other.code == 0, other.err
    names = set(hub.files("model", "org/x"))
    assert "LICENSE" in names
    assert "adapter_model.safetensors" not in names
    assert branch.code == 2


def test_a_branch_and_a_private_repository_are_made(finished: Project, hub: LocalHub, tmp_path: Path) -> None:
    command = ("org/y", "--push", "--private", "--revision", "trial", "--even-if", "unlearned")
    (done,) = _publish(finished, hub, tmp_path / "a", command)
    assert done.code == 0, done.err
    assert hub.repositories["model", "org/y"].private
    files = hub.files("model", "org/y", "trial")
    assert 'revision="trial"' in files["README.md"].decode()
    assert "model.safetensors" not in hub.files("model", "org/y")


def test_tokens_and_faults_end_in_success_or_in_one_line(finished: Project, hub: LocalHub, tmp_path: Path) -> None:
    command = ("--push", "--even-if", "unlearned")
    (none,) = _publish(finished, hub, tmp_path / "a", ("org/none", *command), token=None)
    assert (
        none.err == f"error: HF_TOKEN is not set; create a token with write access at {hub.endpoint}/settings/tokens\n"
    )
    assert hub.requests == []
    (refused,) = _publish(finished, hub, tmp_path / "a", ("org/none", *command), token=READ_TOKEN)
    assert refused.code == 2
    assert refused.err.startswith(f"error: org/none: {hub.endpoint} refused HF_TOKEN (403: ")
    hub.fail("org/busy", 2, Status(503))
    hub.fail("org/limited", 1, Status(429, retry_after=0))
    hub.fail("/storage/", 1, Cut("request"), method="PUT")
    hub.fail("org/down", 99, Status(503))
    busy, limited, down = _publish(
        finished, hub, tmp_path / "a", *((f"org/{name}", *command) for name in ("busy", "limited", "down"))
    )
    for done, name in ((busy, "busy"), (limited, "limited")):
        assert done.code == 0, done.err
        assert len(hub.commits("model", f"org/{name}")) == 2, "the first one makes the repository"
    assert [seen.status for seen in hub.requests if "/storage/" in seen.path].count(None) == 1, "one upload was cut"
    assert [seen.status for seen in hub.requests if "org/limited" in seen.path].count(429) == 1
    assert down.code == 2
    for done in (none, refused, down):
        assert done.err.count("\n") == 1
        assert "Traceback" not in done.err
    assert WRITE_TOKEN not in "".join(done.out + done.err for done in (busy, limited, down))
    assert holding(finished.folder, WRITE_TOKEN) == []
    assert not any(WRITE_TOKEN.encode() in content for content in hub.files("model", "org/busy").values())


def test_a_base_must_be_this_pretrained_model(finished: Project, hub: LocalHub, tmp_path: Path) -> None:
    commit = hub.add("model", "org/other", {"model.safetensors": b"of another"})
    command = ("org/x", "--task", "sst2", "--push", "--even-if", "unlearned", "--base")
    moving, whole = _publish(finished, hub, tmp_path / "a", (*command, "org/other"), (*command, f"org/other@{commit}"))
    assert "expected org/name@commit" in moving.err
    assert whole.err == "error: --base: not allowed with full, whose model is whole without it\n"


def test_the_card_says_what_is_known_and_no_more(finished: Project, hub: LocalHub, tmp_path: Path) -> None:
    command = ("org/x", "--task", "sst2", "--push", "--even-if", "unlearned")
    _publish(finished, hub, tmp_path / "a", command)
    card = ModelCard(hub.files("model", "org/x")["README.md"].decode())
    scores = json.loads((finished.folder / "reports/scores.json").read_text())["sst2"]["methods"]["full"]["seeds"]["1"]
    (index,) = card.data.to_dict()["model-index"]
    results = {metric["type"]: metric["value"] for result in index["results"] for metric in result["metrics"]}
    assert results == {name: scores["figures"][name] for name in ("accuracy", "f1_macro")}
    assert finished.run("git", "rev-parse", "HEAD").stdout.strip() in card.text
    assert "the embedded sample" in card.text
    assert "Warning: not above majority: " in card.text
    assert yaml.safe_load(card.content.split("---")[1])["pipeline_tag"] == "text-classification"
    published = json.loads(hub.files("model", "org/x")["metrics.json"])
    assert {key: published[key] for key in ("epoch", "figures", "intervals")} == {
        key: scores[key] for key in ("epoch", "figures", "intervals")
    }
