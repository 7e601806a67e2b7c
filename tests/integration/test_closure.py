"""A DVC stage's code deps are exactly what it imports: less would cache stale results, more would rerun for nothing."""

import re
from pathlib import Path

import grimp
import pytest
from ruamel.yaml import YAML

ROOT = Path(__file__).parents[2]
FILES = {"dvc.yaml": None, "data/dvc.yaml": "sources"}
FAMILY = "stages/nets/families/${family}.py"
# Found by file name at run time, so no import shows them: which plug-ins each stage may load.
PLUGINS = {
    "model": {FAMILY},
    "pretrain": {FAMILY},
    "perplexity-eval": {FAMILY},
    "finetune-sst2": {FAMILY, "stages/tuning/${item.method}.py"},
    "finetune-squad": {FAMILY, "stages/tuning/${item.method}.py"},
    "evaluate": {"stages/metrics/scores"},
    "classification": {"stages/corpus/formats", "stages/corpus/delimited.py"},
    "report": {"stages/pages/report.html.j2"},
}
SEVEN = {"tokenize", "pretrain", "perplexity-eval", "finetune-sst2", "finetune-squad", "evaluate", "report"}


def _stages() -> list[tuple[str, str, set[str]]]:
    found = []
    for file, room in FILES.items():
        for name, stage in YAML(typ="safe").load(ROOT / file)["stages"].items():
            module = ".".join(filter(None, ["stages", room, name.replace("-", "_")]))
            stage = stage.get("do", stage)  # of one that is repeated for each task
            found.append((name, module, {dep for dep in stage["deps"] if dep.startswith("stages/")}))
    return found


@pytest.fixture(scope="module")
def graph() -> grimp.ImportGraph:
    return grimp.build_graph("stages")


def _closure(graph: grimp.ImportGraph, modules: set[str]) -> set[str]:
    every = modules.union(*(graph.find_upstream_modules(module) for module in modules))
    return {module.replace(".", "/") + ".py" for module in every}


@pytest.mark.parametrize(
    ("name", "module", "deps"), _stages(), ids=lambda value: value if isinstance(value, str) else ""
)
def test_code_deps_are_the_import_closure(graph: grimp.ImportGraph, name: str, module: str, deps: set[str]) -> None:
    plugins = PLUGINS.get(name, set())
    folders = {plugin for plugin in plugins if not Path(plugin).suffix}
    found = {child for folder in folders for child in graph.find_children(folder.replace("/", "."))}
    expected = {
        path
        for path in _closure(graph, {module, *found})
        if not any(path.startswith(f"{folder}/") for folder in folders)
    }
    assert (expected | plugins) - deps == set(), f"dvc.yaml: {name} lacks these code deps"
    assert deps - expected - plugins == set(), f"dvc.yaml: {name} does not import these code deps"


@pytest.mark.parametrize(
    ("name", "folder"),
    [
        ("model", "nets/families"),
        ("pretrain", "nets/families"),
        ("finetune-sst2", "tuning"),
        ("finetune-squad", "tuning"),
        ("evaluate", "metrics/scores"),
        ("classification", "corpus/formats"),
    ],
)
def test_plugins_import_nothing_that_their_stage_does_not_depend_on(
    graph: grimp.ImportGraph, name: str, folder: str
) -> None:
    (deps,) = [deps for stage, _, deps in _stages() if stage == name]
    for path in (ROOT / "stages" / folder).glob("*.py"):
        if path.stem != "__init__":
            module = ".".join(path.relative_to(ROOT).with_suffix("").parts)
            outside = {p for p in _closure(graph, {module}) if not p.startswith(f"stages/{folder}/")}
            assert outside <= deps, f"{module} imports what dvc.yaml's {name} does not list"


def test_packages_are_empty_so_that_they_are_no_hidden_dependency() -> None:
    assert [path for path in (ROOT / "stages").rglob("__init__.py") if path.read_text()] == []


def test_the_pipeline_has_its_seven_stages() -> None:
    stages = YAML(typ="safe").load(ROOT / "dvc.yaml")["stages"]
    assert set(stages) == SEVEN
    for name, stage in stages.items():
        many = "stages/harness/device.py" in stage["deps"]  # what asks for no device would do all of it in each process
        config = "\\${RETRACE_LAUNCH:-one}" if many else "one"
        launcher = f"accelerate-launch --config_file launch/{config}.yaml --quiet"
        assert stage["cmd"].startswith(f"\\${{RETRACE_RUN:-{launcher}}} -m ")
        assert f"-m stages.{name.replace('-', '_')}" in stage["cmd"]


@pytest.mark.parametrize("study", sorted(path.parent.name for path in (ROOT / "studies").glob("*/dvc.yaml")))
def test_a_studys_stages_depend_on_their_listing_of_code_and_on_the_plugins_they_load(study: str) -> None:
    folder = ROOT / "studies" / study
    stages = YAML(typ="safe").load(folder / "dvc.yaml")["stages"]
    params = YAML(typ="safe").load(folder / "params.yaml")
    matrix, named = params["finetune"], params.get("models", {})
    methods = {"finetune-sst2": matrix["methods"], "finetune-squad": matrix.get("squad") or matrix["methods"]}
    for name, stage in stages.items():
        stage = stage.get("do", stage)
        module = re.findall(r"stages\.([\w.]+)", stage["cmd"])[0].rpartition(".")[2]
        deps = " ".join(stage["deps"]).replace("${family}", str(params.get("family")))
        assert f"../code/{module.replace('_', '-')}.txt" in deps, name
        for label in methods.get(name, []):
            entry = params["methods"][label]
            family = named[entry["model"]]["family"] if "model" in entry else params["family"]
            tuning = entry.get("tuning", label)
            assert f"tuning/{tuning}.py" in deps.replace("${item.method}", label), f"{name} {label}"
            assert f"families/{family}.py" in deps, f"{name} {label}"
