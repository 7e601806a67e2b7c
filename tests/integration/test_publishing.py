"""Models as others get them: published to the local hub by `retrace publish`, loaded by the lines of their cards."""

import json
import os
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest
import yaml
from huggingface_hub import ModelCard

from retrace.core.files import SUMS
from retrace.publishing.bundle import SHARES
from tests.commands import Done, retrace
from tests.hub import READ_TOKEN, WRITE_TOKEN, Cut, LocalHub, Status, WrongBytes
from tests.hub.client import run_client
from tests.reloading import reload
from tests.toy import Project, copy_project, holding

pytestmark = pytest.mark.timeout(900)

METHODS = ("full", "scratch", "frozen", "lora", "adapter")
PARTS = ("lora", "adapter")  # methods whose trained part may be published alone
EVEN_IF = tuple(f"--even-if={doubt}" for doubt in ("unlearned", "stale", "dirty"))
UNLEARNED = ("--push", "--even-if", "unlearned")
CELL = ("org/x", "--task", "sst2", *UNLEARNED)
CASES: dict[str, tuple[dict[str, Any], dict[str, Sequence[str]]]] = {  # settings, and methods by task
    "classes and spans with question matches": (
        {"squad.question_match": True}, {"sst2": METHODS, "squad": ("full", "lora")},
    ),
    "classes and spans by a causal family": (
        {"family": "llama"}, {"sst2": ("frozen", "adapter"), "squad": ("frozen", "adapter")},
    ),
    "written answers": ({"family": "llama", "squad.answers": "generative"}, {"sst2": (), "squad": ("full", "lora")}),
}  # fmt: skip


def _train(project: Project, methods: Mapping[str, Sequence[str]]) -> list[tuple[str, str]]:
    """Each task with its methods; returns the cells."""
    project.set_all({
        "finetune.methods": list(methods["sst2"] or methods["squad"]), "finetune.squad_methods": list(methods["squad"]),
        "finetune.tasks": ["sst2"] if methods["sst2"] else [], "metrics.bootstrap_samples": 200,
    })  # fmt: skip
    cells = [(task, method) for task, of in methods.items() for method in of]
    tuning = [f"finetune_{task} --method {method} --seed 1" for task, method in cells]
    before = ("sources.sample", "sources.model", "tokenize", "pretrain", "perplexity_eval")
    for stage in (*before, *tuning, "evaluate"):
        project.stage(*stage.split())
    return cells


def _publish(project: Project, hub: LocalHub, *commands: Sequence[str], token: str | None = WRITE_TOKEN) -> list[Done]:
    """By somebody with an empty cache."""
    home = Path(tempfile.mkdtemp(dir=project.folder.parent))
    variables = {"HF_TOKEN": token} if token else {}
    found = run_client(hub, home, _publish_there, str(project.folder), commands, variables=variables)
    return [Done(**each) for each in found]


def _publish_there(folder: str, commands: Sequence[Sequence[str]]) -> list[dict[str, Any]]:
    """One after another, in a project's folder."""
    os.chdir(folder)
    return [asdict(retrace("publish", *command)) for command in commands]


@pytest.mark.parametrize(
    "case", [pytest.param(case, marks=[pytest.mark.thorough] if "causal" in case else []) for case in CASES]
)
def test_a_published_model_predicts_what_was_recorded(tmp_path: Path, hub: LocalHub, case: str) -> None:
    """Up to rounding, for each method and task, whole or as an adapter onto the published pretrained model."""
    settings, methods = CASES[case]
    project = copy_project(tmp_path / "project", git=True)
    project.set_all(settings)
    cells = _train(project, methods)
    commands = [(f"org/{t}-{m}", "--task", t, "--method", m, "--push", *EVEN_IF) for t, m in cells]
    first = _publish(project, hub, ("org/pretrained", "--push", *EVEN_IF), *commands)
    assert [done.err for done in first if done.code] == []
    for task, method in cells:
        graded = task == "squad" and "squad.question_match" in settings
        assert (SHARES in hub.files("model", f"org/{task}-{method}")) == graded
    base = first[0].out.split()[-1]
    assert base == f"org/pretrained@{hub.commits('model', 'org/pretrained')[0]}"
    alone = [(task, method) for task, method in cells if method in PARTS]
    more = [(f"org/{t}-{m}-alone", "--task", t, "--method", m, "--base", base, "--push", *EVEN_IF) for t, m in alone]
    assert [done.err for done in _publish(project, hub, *more) if done.code] == []
    for task, method in alone:
        whole, part = (hub.files("model", f"org/{task}-{method}{kind}") for kind in ("", "-alone"))
        assert "model.safetensors" not in {Path(name).name for name in part}
        assert {"model.safetensors", "config.json"} <= {Path(name).name for name in whole}
    pairs = [x for t, m in cells for x in (f"org/{t}-{m}", f"{t}/{m}/1")]
    pairs += [x for t, m in alone for x in (f"org/{t}-{m}-alone", f"{t}/{m}/1")]
    found = run_client(hub, tmp_path / "c", reload, str(project.folder), pairs)
    assert [each["repository"] for each in found] == pairs[::2]
    assert [each for each in found if not (each["equal"] and each["same_tokens"] and each["rows"])] == []


@pytest.fixture(scope="module")
def own(finished: Project, tmp_path_factory: pytest.TempPathFactory) -> Project:
    """A copy of the finished project, as publishing writes into its folder."""
    return finished.copy(tmp_path_factory.mktemp("own") / "project")


def test_what_should_not_be_published_is_refused_in_one_line(own: Project, hub: LocalHub, tmp_path: Path) -> None:
    project, cell = own.copy(tmp_path / "copy"), CELL[:4]
    (plain,) = _publish(project, hub, cell)
    assert plain.code == 2
    assert plain.err.startswith("error: sst2 full 1 is flagged: ")
    assert plain.err.endswith("; --even-if unlearned publishes it anyway\n")
    config = project.folder / "models/sst2/full/1/config.json"
    sums, before = config.with_name(SUMS), config.read_bytes()
    (project.folder / "note.txt").write_text("new")
    config.write_bytes(before + b"\n")
    was, now = (sha256(content).hexdigest().encode() for content in (before, before + b"\n"))
    sums.write_bytes(sums.read_bytes().replace(was, now))  # of another run, not damaged
    dirty, stale, dry = _publish(project, hub, cell, (*cell, "--even-if", "dirty"), CELL[:3])
    # The card would name this one, and the model never saw it.
    project.set("tokenizer.vocab_size", project.params()["tokenizer"]["vocab_size"] + 1)
    (early,) = _publish(project, hub, ("org/x", "--push", "--even-if", "dirty"))
    said = "error: not committed: note.txt; so no commit describes this model; --even-if dirty publishes it anyway\n"
    assert dirty.err == said
    said = "out of date according to dvc.lock; run dvc repro and commit dvc.lock; --even-if stale publishes it anyway\n"
    assert stale.err == f"error: finetune-sst2@sst2-full-1: {said}"
    assert "sst2-full-1, tokenize: out of date according to dvc.lock; " in early.err
    assert dry.code == 0
    assert [line.split(":")[0] for line in dry.out.splitlines()].count("would be refused") == 3
    assert hub.requests == []


def test_a_dry_run_lists_what_would_go_and_sends_nothing(own: Project, hub: LocalHub) -> None:
    done, moving = _publish(own, hub, CELL[:3], (*CELL[:3], "--base", "org/other"), token=None)
    assert done.code == 0, done.err
    prepared = own.folder / ".retrace/publish/sst2/full/1"
    rows = {row[0]: row[1] for row in map(str.split, done.out.splitlines()) if len(row) == 2}
    files = {path.name: f"{path.stat().st_size:,}" for path in prepared.iterdir()}
    assert files.items() <= rows.items()
    weights = {"config.json", "metrics.json", "model.safetensors"}
    assert set(files) == {"README.md", *weights, "tokenizer.json", "tokenizer_config.json"}
    assert "nothing was sent; --push sends this to org/x" in done.out
    assert "expected org/name@commit" in moving.err
    assert hub.requests == []


def test_the_same_thing_twice_makes_no_commit(own: Project, hub: LocalHub) -> None:
    first, again, private = _publish(own, hub, CELL, CELL, (*CELL, "--private"))
    made = hub.commits("model", "org/x")
    assert first.out.splitlines()[-1] == f"published as org/x@{made[0]}"
    assert again.out.splitlines()[-1] == f"nothing new: org/x@{made[0]} has all of this already"
    assert private.err == "error: org/x: the repository exists and is public; make it private at the hub first\n"
    earlier = ("adapter_model.safetensors", "model-00001-of-00002.safetensors", "source.json", "tokenizer.model")
    hub.add("model", "org/x", {**dict.fromkeys(earlier, b"of before"), "LICENSE": b"kept"})
    other, branch = _publish(own, hub, CELL, (*CELL, "--revision", "trial", "--private"))
    assert (other.code, branch.code) == (0, 2), other.err
    names = set(hub.files("model", "org/x"))
    assert ("LICENSE" in names, names & {*earlier}) == (True, set())


def test_a_branch_and_a_private_repository_are_made(own: Project, hub: LocalHub) -> None:
    done, again = _publish(own, hub, *[("org/y", "--private", "--revision", "trial", *UNLEARNED)] * 2)
    assert (done.code, again.code) == (0, 0), done.err + again.err
    assert again.out.splitlines()[-1].startswith("nothing new: ")
    assert hub.repositories["model", "org/y"].private
    assert 'revision="trial"' in hub.files("model", "org/y", "trial")["README.md"].decode()
    assert "model.safetensors" not in hub.files("model", "org/y")


def test_tokens_and_faults_end_in_success_or_in_one_line(own: Project, hub: LocalHub) -> None:
    (none,) = _publish(own, hub, ("org/none", *UNLEARNED), token=None)
    said = f"error: HF_TOKEN is not set; create a token with write access at {hub.endpoint}/settings/tokens\n"
    assert (none.err, hub.requests) == (said, [])
    (refused,) = _publish(own, hub, ("org/none", *UNLEARNED), token=READ_TOKEN)
    assert refused.err.startswith(f"error: org/none: {hub.endpoint} refused HF_TOKEN (403: ")
    hub.fail("org/busy", 2, Status(503))
    hub.fail("org/limited", 1, Status(429, retry_after=0))
    hub.fail("/storage/", 1, Cut("request"), method="PUT")
    hub.fail("org/down", 99, Status(503))
    found = _publish(own, hub, *((f"org/{name}", *UNLEARNED) for name in ("busy", "limited", "down")))
    assert [done.code for done in (refused, *found)] == [2, 0, 0, 2]
    for name in ("busy", "limited"):
        assert len(hub.commits("model", f"org/{name}")) == 2, "the first one makes the repository"
    assert [seen.status for seen in hub.requests if "/storage/" in seen.path].count(None) == 1, "one upload was cut"
    assert [seen.status for seen in hub.requests if "org/limited" in seen.path].count(429) == 1
    for done in (none, refused, found[2]):
        assert (done.err.count("\n"), "Traceback" in done.err) == (1, False)
    assert WRITE_TOKEN not in "".join(done.out + done.err for done in found)
    assert holding(own.folder, WRITE_TOKEN) == []
    assert not any(WRITE_TOKEN.encode() in content for content in hub.files("model", "org/busy").values())


def test_the_card_has_the_runs_own_figures_commit_and_warnings(own: Project, hub: LocalHub) -> None:
    _publish(own, hub, CELL)
    files = hub.files("model", "org/x")
    card, published = ModelCard(files["README.md"].decode()), json.loads(files["metrics.json"])
    scores = json.loads((own.folder / "reports/scores.json").read_text())["sst2"]["methods"]["full"]["seeds"]["1"]
    (index,) = card.data.to_dict()["model-index"]
    results = {metric["type"]: metric["value"] for result in index["results"] for metric in result["metrics"]}
    assert results == {name: scores["figures"][name] for name in ("accuracy", "f1_macro")}
    assert published | {key: scores[key] for key in ("epoch", "figures", "intervals")} == published
    commit = own.run("git", "rev-parse", "HEAD").stdout.strip()
    assert published.items() >= {"model": "sst2 full 1", "commit": commit, "split": "validation"}.items()
    assert (published["legend"]["accuracy"]["scale"], published["flags"] != {}) == ("fraction", True)
    for said in (commit, "Retrace's generated sample", " the majority class: accuracy "):
        assert said in card.text
    assert yaml.safe_load(card.content.split("---")[1])["pipeline_tag"] == "text-classification"


def _refusal(name: str) -> str:
    """Why a model of the hub is not loaded."""
    from retrace.core.errors import InputError
    from retrace.publishing.load import load_tuned

    with pytest.raises(InputError) as caught:
        load_tuned(name)
    return str(caught.value)


def test_a_model_that_came_with_wrong_bytes_is_not_loaded(hub: LocalHub, tmp_path: Path) -> None:
    hub.add("model", "org/x", {"retrace.json": b"{}", "model.safetensors": b"0" * 100})
    hub.fail("/storage/", 1, WrongBytes())
    said = run_client(hub, tmp_path, _refusal, "org/x")
    assert "model.safetensors came with the sha256" in said
    assert "retrace.json: method is missing" in run_client(hub, tmp_path, _refusal, "org/x")
