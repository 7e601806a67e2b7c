"""`retrace preset`, the presets, and the form in which DVC writes params.yaml."""

import re
import shutil
from pathlib import Path

import pytest
from dvc.utils.hydra import apply_overrides
from ruamel.yaml import YAML

from retrace.cli.settings import PRESETS, write_presets
from retrace.core.settings import PARAMS, file_of, read_yaml
from retrace.report.runs import flat
from retrace.training.settings import OptimizerSettings
from tests.campaigns.bad_settings import documented_keys
from tests.commands import refused, retrace
from tests.toy import ROOT, Project, copy_settings

FILES = ("params.yaml", "data/params.yaml")
STUDIES = sorted((ROOT / "studies").glob("*/params.yaml"))


@pytest.fixture
def folder(here: Path) -> Path:
    """A folder with the project's settings and presets."""
    copy_settings(here)
    shutil.copytree(ROOT / PRESETS, here / PRESETS)
    return here


def _lines(folder: Path, name: str = "params.yaml") -> list[str]:
    return (folder / name).read_text().splitlines()


CHANGES = [
    ("params.yaml", "lr=5e-4", "lr: 0.0005 # peak learning rate of pretraining"),
    ("data/params.yaml", "sample.reviews=12000", "  reviews: 12000 # labelled sentences for training"),
]


@pytest.mark.parametrize(("name", "override", "line"), CHANGES)
def test_an_experiment_changes_one_line(folder: Path, name: str, override: str, line: str) -> None:
    apply_overrides(name, [override])  # as `dvc exp run -S` does it: it writes lists anew
    pairs = zip(_lines(ROOT, name), _lines(folder, name), strict=True)
    assert [new for old, new in pairs if old != new] == [line]


def test_the_sample_is_what_is_committed(folder: Path) -> None:
    assert retrace("preset", "sample").code == 0
    assert [(folder / name).read_bytes() for name in FILES] == [(ROOT / name).read_bytes() for name in FILES]


def test_the_preset_real_is_the_study_two_cores_without_its_matrix() -> None:
    study = read_yaml(ROOT / "studies/two-cores/params.yaml")
    assert study.pop("methods").keys() == set(study.pop("finetune")["methods"])
    study.pop("data/params.yaml")
    preset = read_yaml(ROOT / PRESETS / "real.yaml")
    preset.pop("hours")
    assert preset == study


def test_a_preset_for_fewer_hours_trains_less(folder: Path) -> None:
    for hours, epochs, examples in ("0.5", 1, 60000), ("1", 4, None), ("2", 8, None):
        assert retrace("preset", "real", "--hours", hours).code == 0
        params = read_yaml(folder / "params.yaml")
        assert (params["pretrain"]["epochs"], params["squad"]["max_train_examples"]) == (epochs, examples)
        assert "hours" not in params
    last = _lines(folder)
    assert retrace("preset", "real").code == 0
    assert _lines(folder) == last


HOURS = [
    (("real", "--hours", "4"), "presets/real.yaml: hours: '4' is not allowed; expected one of 0.5, 1, 2"),
    (
        ("real", "sample", "--hours", "1"),
        "presets/sample.yaml: this preset has no section hours, so it cannot be written with --hours",
    ),
    (("own.yaml", "--hours", "1"), "own.yaml: hours: {1: 5} is not allowed; expected a mapping"),
    (("other.yaml", "--hours", "1"), "params.yaml: pretrain.epoch: unknown key; allowed: "),
]


@pytest.mark.parametrize(("arguments", "message"), HOURS)
def test_hours_that_a_preset_does_not_have(folder: Path, arguments: tuple[str, ...], message: str) -> None:
    (folder / "own.yaml").write_text("hours: {1: 5}\n")
    (folder / "other.yaml").write_text("hours: {1: {pretrain: {epoch: 1}}}\n")
    assert refused("preset", *arguments).startswith(f"error: {message}")
    assert [_lines(folder, name) for name in FILES] == [_lines(ROOT, name) for name in FILES]


@pytest.mark.parametrize(("name", "other"), [("real", "bert-base"), ("bert-base", "real")])
def test_a_preset_means_the_same_whatever_was_there(folder: Path, name: str, other: str) -> None:
    comments = [line.partition(" #")[2] for line in _lines(folder) if " #" in line]
    write_presets([name])
    written = _lines(folder)
    assert read_yaml(folder / "params.yaml")["data"] == "files"
    assert [line.partition(" #")[2] for line in written if " #" in line] == comments
    write_presets([other])
    write_presets([name])
    assert _lines(folder) == written
    write_presets([name, "sample"])  # in the order given
    assert [read_yaml(folder / file) for file in FILES] == [read_yaml(ROOT / file) for file in FILES]


def test_a_study_leaves_no_tasks_of_another(folder: Path) -> None:
    tasks, reader = (ROOT / "studies" / name / "params.yaml" for name in ("plm-peft", "roberta-small"))
    write_presets([reader])
    alone = [read_yaml(folder / file) for file in FILES]
    write_presets([tasks])
    assert {"acl_arc", "ag_news", "restaurants"} <= read_yaml(folder / "params.yaml").keys()
    write_presets([reader])  # an emptied section that has a comment used to be written as no YAML
    assert [read_yaml(folder / file) for file in FILES] == alone


def test_the_samples_preset_sets_every_key_but_those_that_presets_leave_alone() -> None:
    """Otherwise such a key would keep its value in params.yaml, whatever preset is written."""
    keys = {key.name for key in documented_keys() if file_of(key.name) == PARAMS}
    keys |= {f"{task}.optimizer.{name}" for task in ("sst2", "squad") for name in OptimizerSettings.model_fields}
    values = flat(read_yaml(ROOT / PRESETS / "sample.yaml"))
    left = {key for key in keys if not any(f"{name}.".startswith(f"{key}.") for name in values)}
    assert {name.partition(".")[0] for name in left} == {"finetune", "methods", "review"}


def test_a_preset_says_how_many_values_it_changed_and_where(folder: Path) -> None:
    done = retrace("preset", "real", "--hours", "0.5")
    said = re.fullmatch(r"wrote presets/real.yaml into params.yaml: (\d+) values changed\n", done.out)
    assert said, done.out
    assert int(said[1]) > 10
    write_presets(["sample"])
    assert retrace("preset", "real", "--hours", "0.5") == done, "the sample's preset undid it"
    again = "params.yaml and data/params.yaml already have the values of {}\n"
    retrace("preset", "sample")
    assert retrace("preset", "sample").out == again.format("presets/sample.yaml")
    Path("own.yaml").write_text("lr: 0.00123\n")
    assert retrace("preset", "own.yaml").out == "wrote own.yaml into params.yaml: 1 value changed\n"


def test_an_alias_is_a_value_of_its_own(folder: Path) -> None:
    """Sections of params.yaml that share one YAML anchor each get the values that the preset has for them."""
    path = folder / "params.yaml"
    yaml = YAML()
    params = yaml.load(path)
    params["sst2"]["optimizer"] = params["squad"]["optimizer"] = params["pretrain"]["optimizer"]
    yaml.dump(params, path)
    assert "*id" in path.read_text()
    for name in ("sample", "real"):
        write_presets([name])
        found = read_yaml(path)
        for section, given in read_yaml(ROOT / PRESETS / f"{name}.yaml").items():
            if section in ("pretrain", "sst2", "squad"):
                assert found[section]["optimizer"].items() >= given["optimizer"].items(), section


@pytest.mark.parametrize("small", sorted(ROOT.glob("studies/*/small.yaml")), ids=lambda path: path.parent.name)
def test_the_preset_of_a_small_run_is_accepted(folder: Path, small: Path) -> None:
    write_presets([small.with_name("params.yaml"), small])


@pytest.mark.parametrize("study", STUDIES, ids=lambda path: path.parent.name)
def test_a_study_means_the_same_whatever_was_there(folder: Path, study: Path) -> None:
    write_presets([study])
    alone = [flat(read_yaml(folder / file)) for file in FILES]
    copy_settings(folder)
    own = {"folder": "data/own/a", "train": "t.json", "dev": "d.json"}
    optimizers = {"sst2.optimizer.max_loss_rise": 2.0, "squad.optimizer.max_grad_norm": 1.0}  # defaults
    Project(folder).set_all({"question_answering": {"own": own}, "own": read_yaml(folder / "params.yaml")["squad"]})
    Project(folder).set_all({"finetune.questions": ["own"], **dict.fromkeys(optimizers, 0.1)})
    write_presets([study])
    params, data = (flat(read_yaml(folder / file)) for file in FILES)
    assert [params, data] == [alone[0] | optimizers, alone[1]]


@pytest.mark.parametrize("key", ["classification", "hub.classification"])
def test_a_task_that_is_not_listed_keeps_its_section_as_long_as_it_is_defined(folder: Path, key: str) -> None:
    """A study takes the definition away, and was refused for the section, which is then an unknown key."""
    own = {"folder": "data/own/a", "train": "t.csv", "dev": "d.csv"}
    of_hub = {"repository": f"org/name@{'0' * 40}", "dev": "test"}
    section = read_yaml(folder / "params.yaml")["sst2"]
    Project(folder).set_all({key: {"own": own if key == "classification" else of_hub}, "own": section})
    write_presets(["real"])
    assert read_yaml(folder / "params.yaml")["own"] == section
    write_presets([STUDIES[0]])
    assert "own" not in read_yaml(folder / "params.yaml")


def test_what_a_preset_holds_as_a_whole_is_replaced(folder: Path) -> None:
    (folder / "own.yaml").write_text(
        "methods: {full: {lr_factor: 2}, lora: {rank: 4}}\nfinetune: {methods: [full], squad_methods: [lora]}\n"
        "tokenizer: {special: roberta}\ndata/params.yaml:\n  sample: {articles: 100, questioned: 50}\n"
    )
    write_presets(["own.yaml"])
    params = read_yaml(folder / "params.yaml")
    assert params["methods"] == {"full": {"lr_factor": 2}, "lora": {"rank": 4}}
    assert params["tokenizer"]["special"] == "roberta"
    sample = read_yaml(folder / "data/params.yaml")["sample"]
    assert (sample["articles"], sample["reviews"]) == (100, 14000)


WRONG = [
    ("pretrain: {epoch: 3}\n", "params.yaml: pretrain.epoch: unknown key; allowed: epochs, "),
    ("epochs: 3\n", "params.yaml: epochs: unknown key; allowed: data, "),
    ("pretrain: {epochs: -3}\n", "params.yaml: pretrain.epochs: -3 is not allowed; expected a whole number of 0"),
    ("data/params.yaml: {smaple: 3}\n", "data/params.yaml: smaple: unknown key; allowed: checkpoints, "),
    ("pretrain: [\n", "own.yaml:"),
]


@pytest.mark.parametrize(("text", "message"), WRONG)
def test_a_wrong_preset_is_one_line_and_changes_nothing(folder: Path, text: str, message: str) -> None:
    (folder / "own.yaml").write_text(text)
    said = refused("preset", "own.yaml")
    assert said.startswith(f"error: {message}")
    assert "own.yaml" in said
    assert [_lines(folder, name) for name in FILES] == [_lines(ROOT, name) for name in FILES]


def test_a_preset_that_does_not_exist_and_a_folder_without_presets(folder: Path) -> None:
    said = "error: huge: no such file or preset; presets: bert-base, real, sample\n"
    assert refused("preset", "huge") == said
    (folder / "presets").rename(folder / "others")
    said = "presets: no such file or folder; run it in the folder of a checkout\n"
    assert refused("preset", "real").endswith(said)


def test_the_page_of_settings_is_what_the_classes_say() -> None:
    page = (ROOT / "docs/settings.md").read_text()
    assert retrace("settings").out == page, "run: retrace settings > docs/settings.md"
