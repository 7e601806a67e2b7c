"""How many small changes to the code its own unit tests catch.

cosmic-ray makes the changes: another comparison, operator, number or condition, a loop that never runs, a removed
decorator. A number of places is drawn in each file, and one change at each place. An operator becomes another of its
kind; annotations, `frozen` and `strict`, which only find mistakes, and caches of functions, which only save time, are
left as they are. The tests that mutants.yaml names for the file run on a copy of the project with the change, until one
fails, or five times as long as they otherwise take.

cosmic-ray's own runner starts Python for each change, which takes five seconds before the first test. Here, a process
that has already imported the libraries is forked.

mutants.yaml also lists changes that have no effect, and why. mutants.json has the counts, and the lines whose change
went unnoticed. Places are drawn by the text of their lines, so an edit elsewhere in the file does not change which are
drawn.

    python -m pip install cosmic-ray==8.7.0
    python benchmarks/mutants.py [--each 20] [--seed 1] [FILE ...]   # other files keep their results
"""

import ast
import gc
import importlib
import json
import os
import random
import re
import resource
import signal
import sys
import tempfile
import time
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

os.environ |= {"OMP_NUM_THREADS": "1", "RETRACE_THREADS": "1"}  # threads would not live on in a forked process

import hypothesis
import pytest
from cosmic_ray.ast import ast_nodes, get_ast
from cosmic_ray.mutating import mutate_code
from cosmic_ray.operators.operator import Operator
from cosmic_ray.plugins import get_operator, operator_names
from harness import ROOT, plain_parser
from ruamel.yaml import YAML

from tests.toy import copy_as_it_is
from tests.warm import HUB_CLIENTS, LIBRARIES

SETTINGS, RESULT = ROOT / "benchmarks/mutants.yaml", ROOT / "benchmarks/mutants.json"
UNIT = "tests/unit"
KINDS = ("Add Sub Mul Div FloorDiv Mod Pow", "RShift LShift BitOr BitAnd BitXor", "Eq NotEq Lt LtE Gt GtE", "Is IsNot")
KIND = {name: kind for kind, names in enumerate(KINDS) for name in names.split()}
REPLACES = re.compile(r"Replace(?:Binary|Comparison)Operator_(?P<old>[A-Za-z]+)_(?P<new>[A-Za-z]+)$")
Place = tuple[tuple[int, int], tuple[int, int]]  # line and column of its beginning and of its end
PATIENCE, LONGEST = 5, 900.0  # times as long as the tests take; seconds that they may take
MEMORY = 8 << 30  # bytes of a process of tests


@dataclass(frozen=True)
class Change:
    """One change of a file."""

    line: int
    was: str  # the line, without its indent
    lines: int  # of the file
    code: str  # the whole file, changed

    @property
    def now(self) -> str:
        """The line after the change; empty if it was removed."""
        lines = self.code.splitlines()
        return lines[self.line - 1].strip() if len(lines) == self.lines else ""


def operators() -> list[str]:
    """The names of cosmic-ray's operators that need no arguments and keep to a kind."""
    found = []
    for name in operator_names():
        replaces = REPLACES.search(name)
        if not get_operator(name).arguments() and (not replaces or KIND[replaces["old"]] == KIND[replaces["new"]]):
            found.append(name)
    return found


def drawn(path: str, each: int, seed: int) -> list[Change]:
    """Changes of a file, each at another place, by line."""
    source = _text(path)
    lines, changes = source.splitlines(), []
    skipped = list(safeguards(source))
    places = []
    for (start, _), options in possible(source).items():
        if not any(first <= start < last for first, last in skipped):
            was = lines[start[0] - 1]
            draw = random.Random(f"{seed} {path} {was.strip()} {start[1] - len(was)}")
            places.append((draw.random(), start[0], was.strip(), draw.sample(options, len(options))))
    for _, line, was, options in sorted(places, key=lambda place: place[0]):
        codes = (mutate_code(source, operator, number) for operator, number in options)
        code = next((code for code in codes if is_another_program(source, code)), None)
        if code and len(changes) < each:
            changes.append(Change(line, was, len(lines), code))
    return sorted(changes, key=lambda change: change.line)


def possible(source: str) -> dict[Place, list[tuple[Operator, int]]]:
    """The changes possible at each place: the operator, and which of its occurrences the place is."""
    nodes, found = list(ast_nodes(get_ast(source))), defaultdict[Place, list[tuple[Operator, int]]](list)
    for name in operators():
        operator = get_operator(name)()
        for number, place in enumerate(place for node in nodes for place in operator.mutation_positions(node)):
            found[place].append((operator, number))
    return found


def safeguards(source: str) -> Iterator[Place]:
    """Where code that no figure depends on begins and ends: annotations, `frozen`, `strict` of a zip, `lru_cache`."""
    for node in ast.walk(ast.parse(source)):
        found = [getattr(node, name, None) for name in ("annotation", "returns")]
        found += [node.value] if isinstance(node, ast.keyword) and node.arg in ("frozen", "strict") else []
        found += [node] if isinstance(node, ast.Call) and ast.unparse(node.func) == "lru_cache" else []
        for part in found:
            if isinstance(part, ast.expr):  # including the @ of a decorator
                yield (part.lineno, max(0, part.col_offset - 1)), (part.end_lineno or 0, part.end_col_offset or 0)


def is_another_program(source: str, changed: str) -> bool:
    """Whether the change can be compiled and is one."""
    try:
        return ast.dump(ast.parse(changed)) != ast.dump(ast.parse(source))
    except SyntaxError:
        return False


def tests_of(path: str, settings: Mapping[str, Any]) -> list[str]:
    """The test files for a file, those that name it first."""
    patterns = next(tests for code, tests in settings["tests"].items() if path.startswith(code))
    files = [str(file.relative_to(ROOT)) for pattern in patterns for file in sorted((ROOT / UNIT).glob(pattern))]
    name = re.compile(rf"\b{Path(path).stem}\b")
    return sorted(files, key=lambda file: (not name.search(_text(file)), files.index(file)))


def _text(path: str) -> str:
    return (ROOT / path).read_text()


def outcome(folder: Path, tests: Sequence[str], left_out: Sequence[str], seconds: float) -> str:
    """How the tests of a copy of the project end: "passed", "failed" or "too long"."""
    child = os.fork()
    if child == 0:
        os._exit(run_tests(folder, [*tests, *(f"--deselect={UNIT}/{name}" for name in left_out)]))
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        found, status = os.waitpid(child, os.WNOHANG)
        if found:
            return "passed" if status == 0 else "failed"
        time.sleep(0.02)
    os.killpg(child, signal.SIGKILL)
    os.waitpid(child, 0)
    return "too long"


def run_tests(folder: Path, arguments: Sequence[str]) -> int:
    """pytest's exit code, in a process that has imported libraries only."""
    os.setsid()
    resource.setrlimit(resource.RLIMIT_DATA, (MEMORY, MEMORY))
    silence = os.open(os.devnull, os.O_RDWR)
    for stream in (0, 1, 2):
        os.dup2(silence, stream)
    os.chdir(folder)
    os.environ["PYTHONPATH"] = str(folder)
    hypothesis.settings.register_profile(
        "once", derandomize=True, database=None, phases=[hypothesis.Phase.explicit, hypothesis.Phase.generate]
    )
    hypothesis.settings.load_profile("once")  # the same examples every time, and no search for a smaller one
    sys.path[:0] = [str(folder)]
    for name in [name for name in sys.modules if name.partition(".")[0] in ("tests", "retrace")]:
        del sys.modules[name]
    return pytest.main(["-x", "--assert=plain", "-p", "no:cacheprovider", "-m", "not slow", *arguments])


def campaign(
    folder: Path, path: str, each: int, seed: int, settings: Mapping[str, Any], limit: float
) -> dict[str, Any]:
    """A file's counts, and the changes that went unnoticed; its tests may take `limit` seconds."""
    tests, left_out = tests_of(path, settings), settings["left_out"]
    found: dict[str, Any] = {"seed": seed, "drawn": 0, "noticed": 0, "unnoticed": []}
    for change in drawn(path, each, seed):
        (folder / path).write_text(change.code)
        time.sleep(0.05)  # else the guard sees code that changed while its process began
        end = outcome(folder, tests, left_out, limit)
        print(f"{path}:{change.line} {end}: {change.was}  →  {change.now}", flush=True)
        found["drawn"] += 1
        found["noticed"] += end != "passed"
        if end == "passed":
            found["unnoticed"].append({"line": change.line, "was": change.was, "now": change.now})
    (folder / path).write_text(_text(path))
    return found


def limit_of(folder: Path, tests: Sequence[str], left_out: Sequence[str]) -> float:
    """The seconds after which tests that are still running count as having noticed a change."""
    began = time.monotonic()
    if outcome(folder, tests, left_out, LONGEST) != "passed":
        raise SystemExit(f"tests fail without a change: {' '.join(tests)}")
    return 10 + PATIENCE * (time.monotonic() - began)


def write_result(files: Mapping[str, dict[str, Any]], without_effect: Mapping[str, list[dict[str, str]]]) -> None:
    """Write the counts of all files and of each, with the reason why a change has no effect."""
    total = {"drawn": 0, "noticed": 0, "without_effect": 0}
    for path, found in files.items():
        reasons = {(change["was"], change["now"]): change["why"] for change in without_effect.get(path, [])}
        for change in found["unnoticed"]:
            # A file that did not run this time keeps its reasons, whose lines the code may no longer have.
            reason = reasons.get((change["was"], change["now"])) or change.get("without_effect")
            change |= {"without_effect": reason} if reason else {}
            total["without_effect"] += reason is not None
        total["drawn"] += found["drawn"]
        total["noticed"] += found["noticed"]
    shares = {"noticed_share": round(total["noticed"] / max(1, total["drawn"]), 3)}
    RESULT.write_text(json.dumps({**total, **shares, "files": dict(sorted(files.items()))}, indent=2) + "\n")
    print(json.dumps(total | shares))


def main() -> None:
    parser = plain_parser(__doc__)
    parser.add_argument("files", nargs="*", metavar="FILE", help="of retrace/; all by default")
    parser.add_argument("--each", type=int, default=20, help="changes of a file")
    parser.add_argument("--seed", type=int, default=1)
    arguments = parser.parse_args()
    settings = YAML(typ="safe").load(SETTINGS)
    modules = sorted(str(path.relative_to(ROOT)) for path in (ROOT / "retrace").rglob("*.py"))
    every = [path for path in modules if path.startswith(tuple(settings["tests"])) and "__init__" not in path]
    before = json.loads(RESULT.read_text())["files"] if RESULT.exists() else {}
    files = {path: found for path, found in before.items() if path in every}
    for library in (*LIBRARIES, *HUB_CLIENTS):
        importlib.import_module(library)
    gc.freeze()
    with tempfile.TemporaryDirectory() as folder:
        copy = copy_as_it_is(Path(folder))
        copy.run("git", "init", "-q")
        limits: dict[tuple[str, ...], float] = {}
        for path in arguments.files or every:
            tests = tuple(sorted(tests_of(path, settings)))
            if tests not in limits:
                limits[tests] = limit_of(copy.folder, tests, settings["left_out"])
            files[path] = campaign(copy.folder, path, arguments.each, arguments.seed, settings, limits[tests])
            write_result(files, settings["without_effect"])


if __name__ == "__main__":
    main()
