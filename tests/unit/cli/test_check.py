"""`retrace check`, and that what it reads is what dvc.yaml lists; tests/campaigns has the settings that clash."""

from pathlib import Path
from typing import Any

import pytest
from ruamel.yaml import YAML

from retrace.cli import check
from retrace.cli.check import STAGES
from retrace.cli.dvc_files import cache_folder, mend_cache
from retrace.core.settings import plugin_names, read_params
from tests.commands import refused, retrace
from tests.toy import ROOT, Project, copy_settings

PIN = f"org/name@{'0' * 40}"
FAMILIES = ", ".join(plugin_names("retrace.families"))
OWN = {"own": {"folder": "data/own/a", "train": "t.csv", "dev": "d.csv", "text": ["title", "body"]}}
TRAINED = {"lr": 0.001, "epochs": 1, "batch_size": 8, "max_length": 64}


@pytest.fixture
def project(here: Path) -> Project:
    """A folder with the project's settings."""
    return copy_settings(here)


WRONG = [
    ("hub.txt", {}, "data/params.yaml: hub.txt: unknown key; allowed: text, sst2, squad, classification"),
    ("family", "gpt", f"params.yaml: family: 'gpt' is not allowed; expected one of {FAMILIES}"),
    ("finetune.methods", ["full", "half"], "params.yaml: finetune.methods: 'half' is not allowed; expected"),
    (
        "methods",
        {"full": {}},
        "params.yaml: methods.scratch: missing; retrace/methods/scratch.py needs an entry, which",
    ),
    ("finetune.tasks", ["own"], "params.yaml: finetune.tasks: 'own' is not allowed; expected one of sst2"),
    ("metrics.question_answering", ["f1"], "params.yaml: metrics.question_answering: 'f1' is not allowed;"),
    ("squad.answers", "generative", "params.yaml: squad.answers: generative is not allowed with family:"),
    ("methods.lora.per_task", {"sst": {}}, "params.yaml: methods.lora.per_task: 'sst' is not allowed; expected"),
    ("pretrain.text_epochs", 1, "params.yaml: pretrain.text_epochs: expected 0, as tokenizer.train_on leaves out the"),
    ("metrics.classification", ["calibration"], "params.yaml: metrics.classification: ['calibration'] is not allowed;"),
    ("methods.lora.checkpoint", "x", "params.yaml: methods.lora.checkpoint: 'x' is not allowed; expected none, as"),
    ("finetune.questions", ["sst3"], "params.yaml: finetune.questions: 'sst3' is not allowed; expected one of squad"),
    ("classification", None, "data/params.yaml: classification: null is not allowed; expected a mapping"),
    ("classification", {"sst2": {}}, "data/params.yaml: classification.sst2: the name is not allowed"),
    ("classification", {"own": {"folder": "a"}}, "data/params.yaml: classification.own.train is missing"),
    ("hub.classification", {"own": {}}, "data/params.yaml: hub.classification.own.repository is missing"),
]


@pytest.mark.parametrize(("key", "value", "message"), WRONG)
def test_a_wrong_setting_is_one_line(project: Project, key: str, value: Any, message: str) -> None:
    project.set_all({key: value, "tokenizer.train_on": ["squad"]} if key == "pretrain.text_epochs" else {key: value})
    assert refused("check").startswith(f"error: {message}")


def test_a_setting_in_the_wrong_file_is_refused_and_replaces_none(project: Project) -> None:
    path, before = project.folder / "data/params.yaml", read_params(project.folder)
    path.write_text(f"{path.read_text()}\nlr: 3\n")
    assert read_params(project.folder) == before
    assert refused("check").startswith("error: data/params.yaml: lr: unknown key; allowed: ")


RIGHT = [
    {"model.checkpoint": PIN, "pretrain.epochs": 0},
    {"model.checkpoint": PIN, "pretrain.block_size": 512, "model.random_seed": 1},
    {"classification": OWN},
    {"classification": OWN, "finetune.tasks": ["sst2", "own"], "own": TRAINED},
    {"checkpoints": {"big": {"family": "bert", "checkpoint": PIN}}, "methods.full": {"checkpoint": "big"}},
]


@pytest.mark.parametrize("changes", RIGHT)
def test_right_settings(project: Project, changes: dict[str, Any]) -> None:
    project.set_all(changes)
    assert retrace("check").err == ""


def test_no_two_cells_are_one_stage_of_dvc(project: Project) -> None:
    """In a matrix of a task, a method and a seed, DVC calls both of these own-small-full-1, and runs only one."""
    names = ["own-small", "own"]
    project.set_all({"classification": dict.fromkeys(names, OWN["own"]), **dict.fromkeys(names, TRAINED)})
    project.set_all({"finetune.tasks": names, "methods.small-full": {"method": "full"}, "finetune.methods": ["full"]})
    assert retrace("check").err == ""
    project.set("finetune.methods", ["full", "small-full"])
    said = "finetune.tasks: 'own' is not allowed; full on own-small and small-full on own would be one stage"
    assert refused("check") == f"error: params.yaml: {said}\n"


def test_a_task_is_of_one_kind(project: Project) -> None:
    questions = {"own": {"folder": "data/own/a", "train": "t.json", "dev": "d.json"}}
    project.set_all({"classification": OWN, "question_answering": questions})
    said = "error: data/params.yaml: question_answering.own: classification has a task of that name too"
    assert refused("check") == f"{said}\n"


def test_what_dvc_would_fail_for_is_said_before_it_starts(project: Project) -> None:
    Path("dvc.yaml").write_text("stages: {}")
    Path(".dvc").mkdir()
    project.set("finetune.seeds", [])
    for command in ("repro", "spread"):
        assert refused(command).startswith("error: params.yaml: finetune.seeds: [] is not allowed")
    project.set_all({"finetune.seeds": [1], "classification": OWN})
    said = f"error: data/params.yaml: classification.own: '{OWN['own']['folder']}' is not a folder; put "
    assert refused("repro").startswith(said)
    Path("data/own").mkdir()
    Path("data/own/a.dvc").touch()  # then it may be in the remote
    check.require_ready()


@pytest.mark.parametrize("name", ["a--b/c", "a/b..c", "a/-b", "../b", "a/b.git", "a/b/c"])
def test_a_name_that_the_hub_forbids_is_no_repository(project: Project, name: str) -> None:
    project.set("model.checkpoint", f"{name}@{'0' * 40}")
    assert refused("check").startswith(f"error: params.yaml: model.checkpoint: '{name}@000")


def test_a_method_by_another_name_has_a_file_of_that_name(project: Project) -> None:
    project.set_all({"methods.lora8": {"method": "lora", "rank": 8}, "finetune.methods": ["full", "lora8"]})
    said = "dvc.yaml makes its stages depend on retrace/methods/lora8.py, which is not there"
    mend = "copy the file of the method that it is based on, and remove methods.lora8.method"
    assert refused("check") == f"error: params.yaml: methods.lora8: {said}; {mend}\n"


def _listed(params: list[Any]) -> list[str]:
    """The keys that dvc.yaml lists for a stage, with the name of the file in front for files other than params.yaml."""
    keys = [entry for entry in params if isinstance(entry, str)]
    others = [item for entry in params if not isinstance(entry, str) for item in entry.items()]
    return keys + [f"{file}:{key}" for file, listed in others for key in listed or [""]]


OF_STUDIES = sorted(str(path.relative_to(ROOT)) for path in ROOT.glob("studies/*/dvc.yaml"))


@pytest.mark.parametrize("file", ["dvc.yaml", "data/dvc.yaml", *OF_STUDIES])
def test_a_stage_reads_the_keys_that_dvc_compares(file: str) -> None:
    for name, stage in YAML(typ="safe").load(ROOT / file)["stages"].items():
        listed = _listed(stage.get("do", stage)["params"])
        if name != "source":
            keys = STAGES[name].dvc_keys()
            if "task" not in stage.get("matrix", {"task": None}):  # of a study with SQuAD alone
                keys = [key.replace("${item.task}", "squad") for key in keys]
            assert listed == keys, name
            continue
        for data in ("sample", "files", "hub"):
            assert [key.replace("${data}", data) for key in listed] == STAGES[data].dvc_keys()


@pytest.mark.parametrize("ending", ["", ".dir"])
def test_only_what_has_another_content_than_its_name_says_is_damaged(here: Path, capsys, ending: str) -> None:
    """For a file and for the list of a folder; what DVC is still writing has no such name yet."""
    (here / ".dvc").mkdir()
    names = (f"5d/41402abc4b2a76b9719d911017c592{ending}", f"00/{'0' * 30}{ending}", "00/tmpa1")
    sound, damaged, temporary = (cache_folder() / name for name in names)
    for path in (sound, damaged, temporary):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("hello")
    mend_cache()
    assert [path.exists() for path in (sound, damaged, temporary)] == [True, False, True]
    assert capsys.readouterr().out == f"{damaged}: damaged, and removed\nDVC's cache: 2 files, 1 damaged\n"


def test_outside_of_a_checkout_no_cache_is_touched(here: Path) -> None:
    """The folder's own settings of DVC are missing, so this may be the cache of all projects."""
    damaged = cache_folder() / "00" / ("0" * 30)
    damaged.parent.mkdir(parents=True)
    damaged.write_text("hello")
    assert "params.yaml: no such file or folder" in refused("check", "--cache")
    assert damaged.exists()
