"""Pages and lists name only what there is: links, files, commands, the packages of each stage, requirements."""

import re
from pathlib import Path

import pytest
from ruamel.yaml import YAML

from retrace.cli.main import COMMANDS

ROOT = Path(__file__).parents[1]
PAGES = [*sorted(ROOT.glob("*.md")), *sorted((ROOT / "docs").glob("*.md"))]
TRACKED = ("retrace", "stages", "tests", "benchmarks", "launch", "presets", "studies", "docs")
# A path below one of these folders, without the placeholders and patterns of an explanation.
PATH = re.compile(rf"`((?:{'|'.join(TRACKED)})/[\w./-]+)`")


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_links_and_paths_of_a_page_lead_somewhere(page: Path) -> None:
    text = page.read_text()
    for target in re.findall(r"\]\(([^)\s]+)\)", re.sub(r"(?s)```.*?```", "", text)):
        name, _, heading = target.partition("#")
        if re.match(r"\w+:", target):
            continue
        path = (page.parent / name).resolve() if name else page
        assert path.exists(), f"{page.name} links to {target}"
        assert not heading or heading in _headings(path), f"{page.name} links to {target}"
    for name in PATH.findall(text):
        assert (ROOT / name).exists(), f"{page.name} names {name}"


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_commands_of_a_page_exist(page: Path) -> None:
    named = set(re.findall(r"(?:^\$? ?|`)retrace ([a-z]+)", page.read_text(), re.MULTILINE))
    assert named <= COMMANDS.keys(), f"{page.name} names a command that does not exist"
    targets = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))
    assert set(re.findall(r"(?:^|`)make ([a-z-]+)", page.read_text(), re.MULTILINE)) <= targets


def test_the_table_of_packages_is_that_of_dvc_yaml() -> None:
    lines = (ROOT / "docs/architecture.md").read_text().splitlines()
    head, *rows = [[cell.strip(" `") for cell in line.split("|")[1:-1]] for line in lines if line.count("|") == 9]
    shown = {stage: {row[0] for row in rows[1:] if row[number]} for number, stage in enumerate(head) if number}
    stages = YAML(typ="safe").load(ROOT / "dvc.yaml")["stages"]
    packages = {name: [dep for dep in stage["deps"] if dep.startswith("retrace/")] for name, stage in stages.items()}
    listed = {name: {re.sub(r"^retrace/|/\$\{.*", "", dep) for dep in deps} for name, deps in packages.items()}
    assert shown == listed


def _headings(page: Path) -> set[str]:
    """The anchors of a page's headings as GitHub makes them."""
    found = re.findall(r"^#+ (.+)$", page.read_text(), re.MULTILINE)
    return {re.sub(r"[^\w -]", "", heading.lower()).replace(" ", "-") for heading in found}


@pytest.mark.parametrize("name", ["requirements", "requirements-dev"])
def test_a_lock_has_hashes_of_what_is_required(name: str) -> None:
    required, locked = ((ROOT / f"{name}.{kind}").read_text() for kind in ("txt", "lock"))
    pins = {line for line in required.splitlines() if "==" in line and not line.startswith("torch==")}
    hashed = {line.removesuffix(" \\") for line in locked.splitlines() if line.endswith(" \\") and "==" in line}
    assert hashed == pins, "make lock"
