"""The project at toy size: every stage for real, on a corpus and models so small that each takes seconds."""

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import reduce
from operator import getitem
from pathlib import Path
from types import ModuleType
from typing import Any

from ruamel.yaml import YAML

from retrace.core.settings import DATA_PARAMS, PARAMS, file_of
from retrace.datasets.examples import read_task
from tests import warm

ROOT = Path(__file__).parents[1]
TIMEOUT = 480  # seconds for one command, on a machine that has other things to do

SAMPLE = {"seed": 1, "articles": 144, "reviews": 60, "questioned": 24, "held_out_articles": 24, "held_out_reviews": 20}
TOY: dict[str, dict[str, Any]] = {
    "tokenizer": {"vocab_size": 400},
    "model": {"hidden_size": 32, "layers": 2, "heads": 2, "intermediate_size": 64, "max_positions": 128},
    "pretrain": {"epochs": 2, "batch_size": 8, "block_size": 64},
    "perplexity": {"pseudo_passages": 4, "mask_rate": 0.15, "seed": 0},
    "sst2": {"epochs": 1, "batch_size": 16, "max_length": 48},
    "squad": {"epochs": 1, "batch_size": 16, "max_length": 128},
    "finetune": {
        "tasks": ["sst2"],
        "methods": ["full", "scratch"],
        "questions": ["squad"],
        "squad_methods": ["full", "scratch"],
        "seeds": [1],
    },
}


@dataclass(frozen=True)
class Project:
    """A copy of the project in a folder of its own."""

    folder: Path
    variables: Mapping[str, str] = field(default_factory=dict)  # of the environment, in place of this process's
    seconds: float = TIMEOUT  # that a command may take

    def run(self, *command: str, code: int | None = 0, given: str | None = None) -> subprocess.CompletedProcess[str]:
        """Run a command there, `given` its standard input; its exit code must be `code`, any where None."""
        with self.start(*command, stdin=None if given is None else subprocess.PIPE) as started:
            try:
                said, errors = started.communicate(given, timeout=self.seconds)
            except subprocess.TimeoutExpired:
                started.kill()
                raise
        assert code is None or started.returncode == code, f"{command}\n{said}\n{errors}"
        return subprocess.CompletedProcess(started.args, started.returncode, said, errors)

    def start(self, *command: str, stdin: int | None = None) -> subprocess.Popen[str]:
        """Start a command there."""
        environment = {**(self.variables or os.environ), "PYTHONDONTWRITEBYTECODE": "1"}
        environment["PYTHONPATH"] = os.pathsep.join([str(self.folder), self.variables.get("PYTHONPATH", "")])
        environment["PATH"] = f"{Path(sys.executable).parent}{os.pathsep}{environment['PATH']}"
        if environment.get(warm.VARIABLE):
            if environment.get("RETRACE_RUN", "python") == "python":  # DVC's stages too
                environment["RETRACE_RUN"] = " ".join(warm.COMMAND)
            command = _warm(*command)
        options: Any = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
        return subprocess.Popen(command, cwd=self.folder, env=environment, stdin=stdin, **options)

    def stage(self, module: str, *arguments: str, code: int | None = 0) -> subprocess.CompletedProcess[str]:
        """Run a stage, or a module of `retrace`."""
        name = module if module.startswith("retrace.") else f"stages.{module}"
        return self.run(sys.executable, "-m", name, *arguments, code=code)

    def with_variables(self, **variables: str) -> "Project":
        """The same project, its processes having these variables too."""
        return replace(self, variables={**(self.variables or os.environ), **variables})

    def copy(self, folder: Path) -> "Project":
        """A copy of it in a folder that is not there yet."""
        return replace(self, folder=shutil.copytree(self.folder, folder, symlinks=True))

    def params(self) -> dict[str, Any]:
        """params.yaml and data/params.yaml."""
        return {**_yaml().load(self.folder / PARAMS), **_yaml().load(self.folder / DATA_PARAMS)}

    def set(self, key: str, value: Any) -> None:
        """Write one value, by dotted key, into params.yaml or data/params.yaml."""
        self.set_all({key: value})

    def set_all(self, values: Mapping[str, Any]) -> None:
        """Write values, by dotted key, into params.yaml and data/params.yaml."""
        for file in {file_of(key) for key in values}:
            params = _yaml().load(self.folder / file)
            for key in values:
                if file_of(key) == file:
                    *above, last = key.split(".")
                    reduce(getitem, above, params)[last] = values[key]
            _yaml().dump(params, self.folder / file)

    def commit(self, message: str) -> None:
        """Commit everything."""
        self.run("git", "add", "-A")
        self.run("git", "-c", "user.name=test", "-c", "user.email=test@example.org", "commit", "-qm", message)


def copy_project(folder: Path, git: bool = False) -> Project:
    """Copy the project and set toy sizes; `git` makes it a repository with DVC.

    The runs and the learning rate are those that tests expect, whatever params.yaml has.
    """
    project = copy_as_it_is(folder)
    toy = {f"{name}.{key}": value for name, values in TOY.items() for key, value in values.items()}
    project.set_all({"lr": 0.002, "sample": SAMPLE, **toy})
    if git:
        project.run("git", "init", "-q", "-b", "main")
        project.commit("toy")
    return project


def copy_as_it_is(folder: Path) -> Project:
    """Copy the files that belong to the project, without results."""
    listed = subprocess.check_output(["git", "ls-files", "-co", "--exclude-standard", "-z"], cwd=ROOT, text=True)
    for name in filter(None, listed.split("\0")):
        source, target = ROOT / name, folder / name
        is_made = name.endswith("dvc.lock") or (name.startswith("reports/") and not name.endswith(".gitkeep"))
        if source.is_file() and not is_made:
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(source, target)
    return Project(folder)


def copy_settings(folder: Path) -> Project:
    """The project's settings alone, in a folder."""
    for name in (PARAMS, DATA_PARAMS):
        (folder / name).parent.mkdir(exist_ok=True)
        shutil.copyfile(ROOT / name, folder / name)
    return Project(folder)


def write_glue(folder: Path) -> None:
    """Write a task's examples, which lie in the folder, as GLUE gives out SST-2."""
    for part, examples in read_task(folder).parts.items():
        rows = [f"{example.text}\t{example.label}\n" for example in examples]
        (folder / f"{part}.tsv").write_text("".join(["sentence\tlabel\n", *rows]))


def shown_plugin(heading: str) -> ModuleType:
    """The plug-in whose file docs/architecture.md shows under a heading."""
    below = (ROOT / "docs/architecture.md").read_text().partition(f"\n## {heading}\n")[2]
    plugin, source = ModuleType(heading), re.findall(r"(?s)```python\n(.*?)```", below)[0]
    exec(source, vars(plugin))
    return plugin


def holding(folder: Path, text: str) -> list[Path]:
    """The files of a project that hold a text, but for the tests that it has from here."""
    files = (path for path in folder.rglob("*") if path.is_file() and not path.is_relative_to(folder / "tests"))
    return [path for path in files if text.encode() in path.read_bytes()]


def _warm(program: str, *arguments: str) -> tuple[str, ...]:
    """The same command by the server of tests/warm.py, where that is for it."""
    if program == "dvc":
        return (*warm.COMMAND, "-m", "dvc", *arguments)
    plain = program == sys.executable and arguments[0] in ("-m", "-c")
    return (*warm.COMMAND, *arguments) if plain else (program, *arguments)


def _yaml() -> YAML:
    yaml = YAML()
    yaml.preserve_quotes = True
    return yaml
