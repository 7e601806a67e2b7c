"""`retrace doctor`: what it finds in a checkout, and that the command that it names fixes it."""

import fcntl
import json
import os
import re
import shlex
import shutil
import socket
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

from retrace.cli import doctor
from retrace.cli.dvc_files import cache_folder
from retrace.core.files import write_text
from retrace.core.guard import take
from tests.commands import pretend_gpus, refused, retrace
from tests.toy import ROOT, Project, copy_settings


@pytest.fixture
def checkout(here: Path, monkeypatch: pytest.MonkeyPatch) -> Project:
    """A git repository with the project's settings and recorded results."""
    monkeypatch.setattr(doctor, "PROJECT", here)
    monkeypatch.setenv("PATH", f"{Path(sys.executable).parent}:/usr/local/bin:/usr/bin:/bin")
    project = copy_settings(here)
    for name in ("dvc.yaml", "dvc.lock", "data/dvc.lock"):
        (here / name).write_bytes((ROOT / name).read_bytes())
    pins = (ROOT / "requirements.txt").read_text().splitlines(keepends=True)
    (here / "requirements.txt").write_text("".join(pins[:10]))  # each takes some milliseconds to look up
    (here / ".dvc/tmp").mkdir(parents=True)
    project.run("git", "init", "-q")
    project.commit("as it is")
    return project


def _wrong() -> list[tuple[str, str, str]]:
    """Check, what was found and the command, of all that is wrong."""
    done = retrace("doctor", "--json")
    found = json.loads(done.out)
    wrong = [(each["check"], each["found"], each["fix"]) for each in found["findings"] if each["fix"]]
    assert (found["ok"], done.code) == (not wrong, bool(wrong))
    return wrong


def _fixed(check: str, command: str) -> str:
    """What this check alone finds, fixed by this command."""
    ((by, found, fix),) = _wrong()
    assert (by, fix) == (check, command)
    subprocess.run(command.removesuffix(" && dvc repro"), shell=True, check=True, capture_output=True)
    assert _wrong() == []
    return found


def test_nothing_is_wrong_with_what_is_committed(checkout: Project) -> None:
    assert _wrong() == []
    checks = "environment, versions, settings, recorded results, locks, stale results, cache, space, devices"
    found = {line.partition(": ")[0] for line in retrace("doctor").out.splitlines()}
    assert found == {f"ok     {name}" for name in checks.split(", ")}


def test_a_folder_that_is_in_no_repository(checkout: Project) -> None:
    shutil.rmtree(checkout.folder / ".git")
    assert ("environment", "this folder is not in a git repository, which DVC needs", "git init") in _wrong()


def test_a_repository_that_belongs_to_another_user(checkout: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    """As in a container, in which the user is root."""
    monkeypatch.setenv("GIT_TEST_ASSUME_DIFFERENT_OWNER", "true")
    for name in ("GIT_CONFIG_GLOBAL", "GIT_CONFIG_SYSTEM"):
        monkeypatch.setenv(name, os.devnull)
    _, said, fix = next(found for found in _wrong() if found[0] == "environment")
    assert "dubious ownership" in said
    assert fix == f"git config --global --add safe.directory {checkout.folder}"
    part = checkout.folder / "data"  # as if the project were a folder of a larger repository
    monkeypatch.chdir(part)
    monkeypatch.setattr(doctor, "PROJECT", part)
    found = doctor._repository()
    assert found is not None
    assert found.fix == fix


@pytest.mark.parametrize("name", ["dvc.yaml", "data/dvc.yaml"])
def test_stages_that_two_branches_changed(checkout: Project, name: str) -> None:
    text, conflict = (ROOT / name).read_text(), "<<<<<<< HEAD\n=======\n>>>>>>> other\n"
    path = checkout.folder / name
    path.write_text(text)
    assert _wrong() == []
    path.write_text(text.replace("stages:\n", f"stages:\n{conflict}", 1))
    ((check, said, fix),) = _wrong()
    assert (check, fix) == ("stages", f"git diff HEAD -- {name}")
    assert said.startswith(f"{name}:")


def test_a_lock_file_that_dvc_was_writing_when_it_was_killed(checkout: Project) -> None:
    before, last, _ = (ROOT / "dvc.lock").read_text().rpartition("size: ")
    (checkout.folder / "dvc.lock").write_text(f"{before}{last}1")  # cut within a number, so what is left is YAML
    assert _fixed("recorded results", "git checkout HEAD -- dvc.lock && dvc repro").startswith("dvc.lock: ")


@pytest.mark.parametrize("content", ["", "schema: '2.0'\n", "stages: []\n", "<<<<<<< HEAD\n"])
def test_a_lock_file_with_nothing_in_it_and_none_committed(checkout: Project, content: str) -> None:
    (checkout.folder / "data/dvc.lock").unlink()
    checkout.commit("without it")
    (checkout.folder / "data/dvc.lock").write_text(content)
    assert _fixed("recorded results", "rm data/dvc.lock && dvc repro").startswith("data/dvc.lock:")


@pytest.mark.parametrize("case", ["stranger", "stranger reads", "half", "dvc works", "retrace reads", "dvc is gone"])
def test_an_rwlock_holds_dvc_up_unless_a_dvc_works_or_is_gone(checkout: Project, case: str) -> None:
    program, is_dvc = checkout.folder / "bin" / case.partition(" ")[0], case.startswith(("dvc", "retrace"))
    write_text(program, "import time; time.sleep(60)")
    with subprocess.Popen([sys.executable, program]) as other:
        user = {"pid": other.pid, "cmd": "dvc repro"}
        lock = json.dumps({"read": {"models": [user]}} if case.endswith("reads") else {"write": {"models": user}})
        (checkout.folder / ".dvc/tmp/rwlock").write_text(lock[:20] if case == "half" else lock)
        if case == "dvc is gone":
            other.kill()
            other.wait()
        if not is_dvc:
            said = "damaged" if case == "half" else f"process {other.pid} (dvc repro), which is another program"
            assert said in _fixed("locks", "retrace check")
        assert _wrong() == []
        other.kill()


def test_a_run_in_progress_is_named_and_what_it_writes_is_no_leftover(checkout: Project) -> None:
    """The command would remove it while the run writes."""
    for name in ("models/.tokens", "data/classification/.topics", "data/checkpoints/.bert"):
        write_text(checkout.folder / f"{name}.partial/train.npy", "x")
    lock = take(checkout.folder / ".retrace/locks/tokenize.lock")
    assert lock is not None
    with lock:
        assert _wrong() == []
        findings = json.loads(retrace("doctor", "--json").out)["findings"]
    said = f"tokenize runs as process {os.getpid()} of {socket.gethostname()}"
    assert [each["found"] for each in findings if each["check"] == "locks"] == [said]
    assert [check for check, *_ in _wrong()] == ["leftovers"]


LEFT = [
    ("predictions/sst2/lora/1/predictions.parquet", "stale results", "predictions/sst2/lora/1"),
    ("models/sst2/full/7/model.safetensors", "stale results", "models/sst2/full/7"),
    ("models/it's/full/1/x", "stale results", "models/it's/full/1"),
    ("models/.tokens.partial/train.npy", "leftovers", "models/.tokens.partial"),
    ("reports/.metrics.json.partial", "leftovers", "reports/.metrics.json.partial"),
    ("reports/runs/topics/full/1.json", "stale results", "reports/runs/topics/full/1.json"),
    ("reports/live/sst2/lora/1/plots/metrics/loss.tsv", "stale results", "reports/live/sst2/lora/1"),
    ("data/classification/topics/dev.jsonl", "stale results", "data/classification/topics"),
    ("data/checkpoints/bert/config.json", "stale results", "data/checkpoints/bert"),
]


def test_what_killed_runs_and_other_settings_left(checkout: Project) -> None:
    listed = ("models/sst2/full/1/model.safetensors", "reports/runs/sst2/full/1.json", "data/classification/sst2/a")
    curves = [f"reports/live/{run}/plots/metrics/loss.tsv" for run in ("pretrain", "sst2/full/1")]
    for name in (*(path for path, *_ in LEFT), *listed, *curves, "models/tokenizer/tokenizer.json"):
        write_text(checkout.folder / name, "x")
    fixes = {check: fix for check, _, fix in _wrong()}
    removed = {(check, path) for check, fix in fixes.items() for path in shlex.split(fix.removeprefix("rm -r "))}
    assert removed == {(check, path) for _, check, path in LEFT}
    for fix in fixes.values():
        subprocess.run(fix, shell=True, check=True)
    assert _wrong() == []
    assert (checkout.folder / "models/sst2/full/1/model.safetensors").exists()


def test_a_folders_name_does_not_act_on_the_terminal(checkout: Project) -> None:
    write_text(checkout.folder / "models/\x1b[8m/full/1/x", "x")
    assert "\x1b" not in retrace("doctor").out


def test_settings_that_are_not_there_are_wrong(checkout: Project) -> None:
    (checkout.folder / "params.yaml").unlink()
    said = "params.yaml: no such file or folder; run it in the folder of a checkout"
    assert ("settings", said) in [finding[:2] for finding in _wrong()]


def test_checkpoints_that_no_run_resumes(checkout: Project) -> None:
    (checkout.folder / "dvc.yaml").write_text("stages: {a: {cmd: echo 1 > a, outs: [a]}}")
    for name in ("dvc.lock", "data/dvc.lock"):
        (checkout.folder / name).unlink()
    checkout.run("dvc", "init", "-q", "-f", "--no-scm")
    states = checkout.folder / ".retrace/states"
    for name in ("pretrain-1.2", "sst2.full.1-3.4"):
        (states / name / "000000007").mkdir(parents=True)
        (states / f"{name}.lock").write_text("1 here")
    assert _wrong() == []  # as stage a is out of date, so may be what the states are of
    checkout.run("dvc", "repro")
    with (states / "pretrain-1.2.lock").open() as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)  # as a worker of DVC's queue does
        wrong = _wrong()
    said = "sst2.full.1-3.4: 0 KiB, of abandoned settings or code, as nothing is out of date"
    fix = "rm -r .retrace/states/sst2.full.1-3.4 .retrace/states/sst2.full.1-3.4.lock"
    assert wrong == [("saved states", said, fix)]
    subprocess.run(fix, shell=True, check=True)
    assert {path.name for path in states.iterdir()} == {"pretrain-1.2", "pretrain-1.2.lock"}


@pytest.mark.parametrize("folder", [False, True])
def test_an_entry_of_the_cache_that_was_cut(checkout: Project, folder: bool) -> None:
    digest = "01" * 16 + ".dir" * folder
    lock = {"stages": {"a": {"cmd": "a", "outs": [{"path": "models/a", "md5": digest, "size": 5}]}}}
    (checkout.folder / "dvc.lock").write_text(json.dumps(lock) + "\n")
    store = checkout.folder / ".dvc/cache/files/md5"
    cached, inner = store / "01" / digest[2:], store / "ff/ff"
    write_text(cached, '[{"md5": "ffff", "relpath": "b"}]' if folder else "hello")
    write_text(inner, "hello")
    assert _wrong() == []
    (inner if folder else cached).write_text("hell")
    assert _fixed("cache", "retrace check --cache && dvc repro") == "cut short: models/a"


def test_a_result_that_git_has_is_not_expected_in_the_cache(checkout: Project) -> None:
    """As after `dvc pull`."""
    outs = [{"path": f"reports/{name}", "md5": f"0{number}" * 16} for number, name in enumerate(("metrics.json", "a"))]
    (checkout.folder / "dvc.lock").write_text(json.dumps({"stages": {"a": {"cmd": "a", "outs": outs}}}) + "\n")
    (checkout.folder / "data/dvc.lock").unlink()
    write_text(checkout.folder / "reports/metrics.json", "{}")
    checkout.commit("metrics")
    assert "cache: 0 of 1 recorded outputs; `retrace repro` pulls or makes the others\n" in retrace("doctor").out
    write_text(checkout.folder / ".dvc/cache/files/md5/01" / ("01" * 15), "hello")
    assert "cache: 1 of 1 recorded outputs\n" in retrace("doctor").out


def test_versions_and_settings_that_are_others(checkout: Project) -> None:
    (checkout.folder / "requirements.txt").write_text("numpy==0.1\nno-such-package==1\npandas==0.2\nscipy==0.3\n")
    checkout.set("sst2.lr", "fast")
    (versions, found, command), settings = _wrong()
    assert (versions, command) == ("versions", "python -m pip install -r requirements.txt")
    assert re.search("numpy is .*no-such-package is missing, pinned 1", found)
    said = "params.yaml: sst2.lr: 'fast' is not allowed; expected a number above 0"
    assert settings == ("settings", said, "git diff HEAD -- params.yaml data/params.yaml")


@pytest.mark.parametrize("command", ["doctor", "repro", "spread", "review", "stop"])
def test_elsewhere_it_says_where_to_run_it(here: Path, command: str) -> None:
    said = "no such file or folder; run it in the folder of a checkout\n"
    assert refused(command) == f"error: dvc.yaml: {said}"
    (here / "dvc.yaml").touch()  # as in data/
    assert refused(command) == f"error: .dvc: {said}"


@pytest.mark.parametrize("level", ["", "--local "])
def test_a_remote_whose_downloads_are_not_checked(checkout: Project, level: str) -> None:
    config = checkout.folder / (".dvc/config.local" if level else ".dvc/config")
    config.write_text("[core]\n    remote = shared\n['remote \"shared\"']\n    url = ../shared\n")
    said = "shared: downloads are not checked against their MD5"
    assert _fixed("remote", f"dvc remote modify {level}shared verify true") == said


def test_a_remotes_name_is_no_command(checkout: Project) -> None:
    """It may come with a fork, and the fix is there to be copied."""
    name = "x; touch made"
    write_text(Path(".dvc/config"), f"[core]\n    remote = {name}\n['remote \"{name}\"']\n    url = ../shared\n")
    _fixed("remote", f"dvc remote modify '{name}' verify true")
    assert not Path("made").exists()


def test_a_remote_whose_client_is_not_installed(checkout: Project) -> None:
    remote = "remote = far\n['remote \"far\"']\n    url = oss://bucket/folder\n    verify = true\n"
    (checkout.folder / ".dvc/config").write_text(f"[core]\n    {remote}")
    said = "far: oss is supported, but requires 'dvc-oss' to be installed"
    assert _wrong() == [("remote", said, "python -m pip install -c requirements.txt dvc-oss")]


@pytest.mark.parametrize(
    ("damaged", "fix"),
    [
        (".dvc/config", "git checkout HEAD -- .dvc/config"),
        (".dvc/config.local", "mv .dvc/config.local .dvc/config.local.damaged"),
    ],
)
def test_settings_of_dvc_that_it_cannot_read(checkout: Project, damaged: str, fix: str) -> None:
    Path(".dvc/config").write_text("")
    checkout.commit("DVC's settings")
    Path(damaged).write_text("['remote \"own\"']\n    url = https://host/x\n    password: ('se') (cret\n")
    assert [(check, said) for check, _, said in _wrong()] == [("cache", fix), ("remote", fix)]
    assert refused("check", "--cache") == (
        "error: DVC's configuration (.dvc/config or .dvc/config.local): config file error: Invalid line (matched as "
        "neither section nor keyword) at line 3.\n"
    )
    subprocess.run(fix, shell=True, check=True, capture_output=True)
    assert _wrong() == []


def test_pins_that_were_removed(checkout: Project) -> None:
    (checkout.folder / "requirements.txt").unlink()
    assert _fixed("versions", "git checkout HEAD -- requirements.txt") == "requirements.txt is missing"


def test_pins_that_two_branches_changed(checkout: Project) -> None:
    path = checkout.folder / "requirements.txt"
    path.write_text(f"<<<<<<< HEAD\n{path.read_text()}=======\nnumpy==0.1\n>>>>>>> other\n")
    assert _fixed("versions", "git checkout HEAD -- requirements.txt") == "requirements.txt has a merge conflict"


def test_the_cache_that_is_looked_at_is_that_of_the_checkout(checkout: Project) -> None:
    (checkout.folder / ".dvc/config").write_text("[cache]\n    dir = elsewhere\n")
    assert cache_folder() == checkout.folder / ".dvc/elsewhere/files/md5"


@pytest.mark.parametrize(("needed", "is_wrong"), [(500, False), (501, True)])
def test_results_are_there_twice_in_the_cache_and_here(
    checkout: Project, monkeypatch: pytest.MonkeyPatch, needed: int, is_wrong: bool
) -> None:
    outs = [{"path": "models/a", "md5": "01" * 16, "size": needed}]
    (checkout.folder / "dvc.lock").write_text(json.dumps({"stages": {"a": {"cmd": "a", "outs": outs}}}) + "\n")
    (checkout.folder / "data/dvc.lock").unlink()
    monkeypatch.setattr(doctor.shutil, "disk_usage", lambda path: SimpleNamespace(free=1000))
    assert [(check, fix) for check, _, fix in _wrong()] == [("space", "dvc gc --workspace")] * is_wrong


def test_a_retrace_of_another_checkout(checkout: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    other = checkout.folder / "other"
    monkeypatch.setattr(doctor, "PROJECT", other)
    said = f"retrace is installed from another checkout, {other}"
    assert _wrong() == [("environment", said, "make setup && source .venv/bin/activate")]


def test_a_torch_for_cpus_is_of_the_pinned_version_and_uses_no_gpu(checkout: Project, monkeypatch) -> None:
    """So pip would keep it, unless it is uninstalled first."""
    (checkout.folder / "requirements.txt").write_text("torch==2.9.0\n")
    monkeypatch.setattr(doctor, "installed", lambda name: "2.9.0+cpu")
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    assert _wrong() == []
    monkeypatch.setenv("PATH", pretend_gpus(checkout.folder / "programs", 2)["PATH"])
    said = "2 GPUs visible, which this torch cannot use"
    mended = "python -m pip uninstall --yes torch && python -m pip install -r requirements.txt"
    assert _wrong() == [("devices", said, mended)]


def test_within_a_checkout_it_says_which_folder_to_run_it_in(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (here / "dvc.yaml").touch()
    (here / "docs/more").mkdir(parents=True)
    monkeypatch.chdir("docs/more")
    assert refused("check") == f"error: params.yaml: no such file or folder; run it in {here}\n"


@pytest.mark.parametrize(("within", "command"), [("data/own", "check"), ("studies/two-cores", "stop")])
def test_below_another_pipeline_it_names_the_folder_of_the_checkout(
    here: Path, monkeypatch: pytest.MonkeyPatch, within: str, command: str
) -> None:
    """And not data/ or studies/, which have a dvc.yaml of their own."""
    (here / ".dvc").mkdir()
    (here / within).mkdir(parents=True)
    for folder in (here, (here / within).parent):
        (folder / "dvc.yaml").touch()
    monkeypatch.chdir(within)
    assert refused(command).endswith(f": no such file or folder; run it in {here}\n")


def test_programs_that_are_not_on_the_path(checkout: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(doctor.shutil, "which", lambda name: None)
    assert _wrong() == [("environment", "dvc and git not on the PATH", "source .venv/bin/activate")]


def test_an_entry_of_the_cache_whose_size_was_not_recorded(checkout: Project) -> None:
    outs = [{"path": "models/a", "md5": "01" * 16}]
    (checkout.folder / "dvc.lock").write_text(json.dumps({"stages": {"a": {"cmd": "a", "outs": outs}}}) + "\n")
    write_text(checkout.folder / ".dvc/cache/files/md5/01" / ("01" * 15), "hello")
    assert _wrong() == []
