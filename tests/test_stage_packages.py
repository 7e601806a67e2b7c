"""A stage's code deps are the packages (folders of retrace/) that its script's imports reach: fewer would leave stale
results in place, more would rerun for nothing."""

import re
import shlex
import subprocess
from pathlib import Path

import grimp
import pytest
from ruamel.yaml import YAML

from tests.commands import write_program

ROOT = Path(__file__).parents[1]
PIPELINES = sorted([ROOT / "dvc.yaml", ROOT / "data/dvc.yaml", *ROOT.glob("studies/**/dvc.yaml")])
OF_STUDIES = sorted(ROOT.glob("studies/*/dvc.yaml"))
SOURCES = ("sample", "files", "hub")  # `data` in params.yaml chooses one
# Packages from which a stage needs only one file or folder: the plug-in that it loads, its kind of task.
FAMILY, METHOD = "retrace/families/${family}.py", "retrace/methods/${item.method}.py"
PARTS = {
    "retrace/families": FAMILY,
    "retrace/methods": METHOD,
    "retrace/tasks/classification.py": "retrace/tasks/classification.py",
    "retrace/tasks/question_answering": "retrace/tasks/question_answering",
}
# Plug-ins are found by file name at run time, so no import shows them: the packages of those that each stage may load.
# A trained model's folder holds the digest of its family's file, so stages that read one need no such dep.
LOADED = {
    "model": ["retrace.families"],
    "checkpoints": ["retrace.families"],
    "pretrain": ["retrace.families"],
    "finetune-sst2": ["retrace.methods"],
    "finetune-squad": ["retrace.methods"],
    "evaluate": ["retrace.evaluation.metrics"],
    "compare": ["retrace.families", "retrace.methods"],
}


def _stages() -> list[tuple[str, str, set[str]]]:
    """Name, script and code deps of each stage of the pipeline, of the data and of the studies."""
    found = []
    for path in PIPELINES:
        for name, stage in YAML(typ="safe").load(path)["stages"].items():
            stage = stage.get("do", stage)
            code = {_plug_in(dep) for dep in stage["deps"] if dep.startswith(("stages/", "retrace/"))}
            script = next(word for word in stage["cmd"].split() if word.startswith("stages."))
            for data in SOURCES if "${data}" in script else [""]:
                chosen = {dep.replace("${data}", data) for dep in code}
                label = "/".join([*path.parent.relative_to(ROOT).parts, data or name])
                found.append((label, script.replace("${data}", data), chosen))
    return found


def _plug_in(dep: str) -> str:
    """A study lists its families and methods by their files, or all of them: they are dependencies of the same kind."""
    package = "/".join(dep.split("/")[:2])
    return PARTS[package] if package in ("retrace/families", "retrace/methods") else dep


STAGES = _stages()


@pytest.fixture(scope="module")
def graph() -> grimp.ImportGraph:
    return grimp.build_graph("stages", "retrace", cache_dir=None)


def _package_of(module: str) -> str | None:
    """What a dep on a module is called; None for a package's own file, which says only what the package is for."""
    path = module.replace(".", "/")
    if (ROOT / path).is_dir():
        return None
    for part, dep in PARTS.items():
        if f"{path}.py" == part or path.startswith(f"{part}/"):
            return dep
    return f"{path}.py" if path.startswith("stages/") else "/".join(path.split("/")[:2])


@pytest.mark.parametrize(("name", "script", "deps"), STAGES, ids=[name for name, *_ in STAGES])
def test_code_deps_are_the_packages_that_a_stage_reaches(graph, name: str, script: str, deps: set[str]) -> None:
    loaded = {plugin for package in LOADED.get(name.rpartition("/")[2], []) for plugin in graph.find_children(package)}
    start = {script, *loaded}
    reached = start.union(*(graph.find_upstream_modules(module) for module in start))
    packages = {_package_of(module) for module in reached} - {None}
    assert packages == deps, name


@pytest.mark.parametrize("path", OF_STUDIES, ids=[path.parent.name for path in OF_STUDIES])
def test_a_study_with_stages_of_its_own_depends_on_the_methods_that_it_uses(path: Path) -> None:
    """It lists their files, as its methods have names of their own; an edit of any other file reruns nothing."""
    methods = YAML(typ="safe").load(path.with_name("params.yaml"))["methods"]
    used = {f"retrace/methods/{entry.get('method', name)}.py" for name, entry in methods.items()}
    for name, stage in YAML(typ="safe").load(path)["stages"].items():
        listed = {dep for dep in stage["deps"] if dep.startswith("retrace/methods/")}
        assert listed == (used if name.startswith("finetune-") else set()), name


def test_a_module_is_read_in_one_go() -> None:
    paths = [path for package in ("stages", "retrace") for path in (ROOT / package).rglob("*.py")]
    assert [path for path in paths if len(path.read_text().splitlines()) > 400] == []


def test_predict_does_not_import_the_slow_packages_for_scoring(graph: grimp.ImportGraph) -> None:
    """The first answer of `retrace predict` takes as long as its imports, without pandas, scikit-learn and plots."""
    reached = graph.find_upstream_modules("retrace.serving.predictor")
    slow = ("retrace.evaluation", "retrace.report", "retrace.results.predictions")
    assert sorted(module for module in reached if module.startswith(slow)) == []


def test_each_stage_has_its_launcher() -> None:
    for name, stage in YAML(typ="safe").load(ROOT / "dvc.yaml")["stages"].items():
        processes = "${run}" if "retrace/compute" in stage["deps"] else "${run_single}"  # else each would do all of it
        assert stage["cmd"].startswith(f"{processes} stages.{name.replace('-', '_')}")


@pytest.mark.parametrize("path", PIPELINES, ids=[str(path.relative_to(ROOT)) for path in PIPELINES])
def test_only_sh_expands_variables(path: Path) -> None:
    """DVC runs commands in the user's own shell: zsh splits no variable into words, and fish has no ${NAME:-WORD}."""
    pipeline = YAML(typ="safe").load(path)
    commands = [value for each in pipeline["vars"] if isinstance(each, dict) for value in each.values()]
    commands += [stage.get("do", stage)["cmd"] for stage in pipeline["stages"].values()]
    assert [command for command in commands if r"\${" in re.sub("'[^']*'", "", command)] == []


STARTED = [
    ({}, "-m stages.pretrain"),
    ({"RETRACE_LAUNCH": "gpus"}, "-m retrace.compute.launch --config_file launch/gpus.yaml -m stages.pretrain"),
    ({"RETRACE_LAUNCH": "gpus", "RETRACE_RUN": "python -X dev"}, "-X dev -m stages.pretrain"),
]


@pytest.mark.parametrize(("variables", "arguments"), STARTED)
def test_a_stage_starts_from_a_shell_that_expands_nothing(
    tmp_path: Path, variables: dict[str, str], arguments: str
) -> None:
    (run,) = (each["run"] for each in YAML(typ="safe").load(ROOT / "dvc.yaml")["vars"] if "run" in each)
    write_program(tmp_path / "python", 'echo "$@"')
    command = [*shlex.split(run.replace(r"\${", "${")), "stages.pretrain"]
    environment = {"PATH": f"{tmp_path}:/usr/bin:/bin", **variables}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
    assert done.stdout == f"{arguments}\n"
