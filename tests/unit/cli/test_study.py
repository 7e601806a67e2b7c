"""`retrace study`: the list of studies, and the workspace of one, filled and filled again.

DVC itself runs in a workspace in tests/integration/test_studies.py.
"""

import os
import re
import sys
from pathlib import Path

import pytest
from dvc.config import Config

from retrace.cli.study import fill_workspace
from retrace.core.errors import InputError
from retrace.core.files import write_json
from retrace.core.guard import lock
from retrace.core.settings import read_params, read_yaml
from retrace.study.published import ComparedTable, StudyResult
from tests.commands import refused, retrace
from tests.study import EVIL, cell_of, write_study
from tests.toy import Project, copy_project

DVC = (sys.executable, "-m", "dvc")
WRITTEN_ANEW = ("params.yaml", ".dvcignore", "dvc.yaml", "study.yaml", "config.local")


@pytest.fixture
def mood(here: Path) -> None:
    """A folder with a study."""
    write_study(here / "studies/mood")


@pytest.fixture
def project(tmp_path: Path) -> Project:
    return copy_project(tmp_path / "project", git=True)


@pytest.mark.usefixtures("mood")
def test_studies_are_listed_with_how_they_were_run() -> None:
    assert retrace("study", "list").out.splitlines()[1].split() == ["mood", "3", "7", "not", "run", EVIL]
    write_json(Path("studies/mood/reports/study.json"), {"title": "T", "source": "S", "small": True, "tables": {}})
    assert "  small  " in retrace("study", "list").out
    write_json(Path("studies/mood/reports/study.json"), {"title": "T", "figures": {}})  # as of another version
    assert "  cannot be read  " in retrace("study", "list").out


@pytest.mark.usefixtures("mood")
def test_what_is_not_there_is_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    assert refused("study", "compare", "news") == "error: NAME: 'news' is not a study; expected one of mood\n"
    said = "error: studies/mood has not been run; use: retrace study run mood\n"
    assert refused("study", "compare", "mood") == said
    monkeypatch.chdir("/")
    said = "error: studies: no such file or folder; run it in the folder of a checkout\n"
    assert refused("study", "list") == said


@pytest.mark.usefixtures("mood")
def test_a_count_that_differs_is_not_said_to_lie_outside_an_interval() -> None:
    cells = {"r": {"parameters": cell_of("beyond", "count", "7", "8", published=7.0, reproduced=8.0)}}
    tables = {"cost": ComparedTable(title="Cost", rows=cells)}
    result = StudyResult(title="T", source="S", small=True, tables=tables)
    write_json(Path("studies/mood/reports/study.json"), result.to_json())
    *_, meaning, _ = retrace("study", "compare", "mood").out.splitlines()
    assert meaning.endswith(", or is not the number that Retrace counts")


@pytest.mark.usefixtures("mood")
def test_settings_of_dvc_that_it_cannot_read_are_one_line() -> None:
    Path(".dvc").mkdir()
    Path(".dvc/config").write_text("password: secret\n")
    said = refused("study", "run", "mood", "--small")
    assert said.startswith("error: DVC's configuration (.dvc/config or .dvc/config.local): ")
    assert "secret" not in said


def _fill(project: Project, name: str, small: bool) -> Path:
    folder = project.folder / ".retrace/studies" / name
    fill_workspace(project.folder / "studies" / name, folder, small)
    return folder


def test_the_studys_settings_and_the_users_data_are_in_force_there_and_nowhere_else(project: Project) -> None:
    own = project.folder / "data/own/sst2/train.tsv"
    own.parent.mkdir(parents=True)
    own.write_text("sentence\tlabel\n")
    project.commit("own data")
    for small, block in ((False, 512), (True, 64)):
        folder = _fill(project, "bert-wikitext2", small)
        params = read_params(folder)
        assert (params["family"], params["pretrain"]["block_size"]) == ("bert", block)
        assert (folder / "data/own/sst2/train.tsv").samefile(own)
        (folder / "data/own").unlink()
        (folder / "data/own").symlink_to(project.folder.parent / "former")  # where the checkout was moved from
        _fill(project, "bert-wikitext2", small)
        assert (folder / "data/own/sst2/train.tsv").samefile(own)
    assert project.run("git", "status", "--porcelain").stdout == ""


def test_only_what_changed_is_written_again_and_what_is_gone_vanishes(project: Project) -> None:
    gone, edited = project.folder / "retrace/gone.py", project.folder / "retrace/families/bert.py"
    gone.write_text("")
    folder = _fill(project, "two-cores", small=False)
    paths = [path for path in folder.rglob("*") if path.is_file() and path.name not in WRITTEN_ANEW]
    before = {path: path.stat().st_mtime_ns for path in paths}
    gone.unlink()
    edited.write_text("# edited\n")
    (folder / "models").mkdir()  # what a run left
    _fill(project, "two-cores", small=False)
    now = {path: path.stat().st_mtime_ns for path in paths if path.exists()}
    assert before.keys() - now.keys() == {folder / "retrace/gone.py"}
    assert [path for path, time in now.items() if time != before[path]] == [folder / "retrace/families/bert.py"]
    assert (folder / "models").is_dir()


def test_dvc_knows_the_workspace_by_itself_and_shares_the_projects_cache(project: Project) -> None:
    project.run(*DVC, "config", "--local", "core.autostage", "true")
    project.run(*DVC, "remote", "add", "beside", "../storage")
    project.run(*DVC, "remote", "add", "far", "https://ada:secret@example.org/a")
    there = Project(_fill(project, "roberta-small", small=True))
    config = Config(str(there.folder / ".dvc"))
    assert Path(config["cache"]["dir"]) == project.folder / ".dvc/cache"
    assert config["core"]["autostage"]
    assert Path(config["remote"]["beside"]["url"]).resolve() == project.folder.parent / "storage"
    assert config["remote"]["far"]["url"] == "https://ada:secret@example.org/a"
    assert (there.folder / ".dvc").stat().st_mode & 0o077 == 0
    stages = there.run(*DVC, "stage", "list", "--all", "--name-only").stdout.split()
    assert {"pretrain", "data/dvc.yaml:checkpoints@llama", "studies/dvc.yaml:compare"} <= set(stages)
    assert not any("studies" in name for name in project.run(*DVC, "stage", "list", "--all").stdout.split())


def test_a_study_without_a_small_run_or_that_is_running_is_one_line(project: Project, monkeypatch) -> None:
    monkeypatch.chdir(project.folder)
    said = "error: studies/two-cores/small.yaml: no such file; the study has no small run\n"
    assert refused("study", "run", "two-cores", "--small") == said
    with lock("two-cores", project.folder / ".retrace/studies"):
        said = f"error: two-cores is already running here as process {os.getpid()}\n"
        assert refused("study", "run", "two-cores") == said
    Path("studies/two-cores/params.yaml").unlink()
    said = "error: studies/two-cores/params.yaml: no such file; the study has no settings\n"
    assert refused("study", "run", "two-cores") == said


def test_wrong_figures_are_refused_before_anything_is_run(project: Project, monkeypatch) -> None:
    monkeypatch.chdir(project.folder)
    published = project.folder / "studies/two-cores/published.yaml"
    published.write_text(f"{published.read_text()}curves: []\n")
    said = refused("study", "run", "two-cores")
    assert said.startswith(f"error: {published}: curves: unknown key; allowed: title, ")
    assert not (project.folder / ".retrace").exists()


def test_a_study_that_needs_more_than_the_machine_has_is_refused_before_anything_is_run(
    project: Project, monkeypatch, capfd
) -> None:
    monkeypatch.chdir(project.folder)
    settings = project.folder / "studies/two-cores/params.yaml"
    settings.write_text(settings.read_text().replace("hidden_size: 192", "hidden_size: 300000"))
    assert retrace("study", "run", "two-cores").code == 2
    assert ": it needs about " in capfd.readouterr().err
    assert not (project.folder / ".retrace/studies/two-cores/models").exists()


def test_a_studys_own_pipeline_may_have_stages_of_any_kind_and_has_to_be_yaml(project: Project) -> None:
    own = project.folder / "studies/roberta-small/dvc.yaml"
    own.write_text("stages: {each: {foreach: [1], do: {cmd: ls, deps: [data/text]}}, last: {cmd: ls}}\n")
    folder = _fill(project, "roberta-small", small=True)
    deps = read_yaml(folder / "studies/dvc.yaml")["stages"]["compare"]["deps"]
    assert ("data/text" in deps, "models/pretrained" in deps) == (True, False)
    own.write_text("stages: {\n")
    with pytest.raises(InputError, match=f"^{re.escape(str(own))}:"):
        _fill(project, "roberta-small", small=True)
