"""The code of each stage: stages/ → studies/code/<stage>.txt, a line for each file that the stage imports.

A line is the SHA-256 of the file's bytes and its name. A stage of a study depends on its one file here, where dvc.yaml
lists all that it imports: editing a metric changes evaluate.txt and with it what scores, and trains nothing anew.

    python -m stages.sources.code
"""

from pathlib import Path

import grimp

from retrace.core.errors import exit_cleanly
from retrace.core.files import atomic_folder, write_text
from retrace.core.guard import PROJECT, file_digest, guarded
from retrace.core.registry import plugin_names

CODE = Path("studies/code")
NOT_STAGES = ("code",)
ROOMS = ("stages", "stages.sources")


def main() -> None:
    with guarded("code", [], {}), atomic_folder(CODE) as folder:
        graph = grimp.build_graph("stages", "retrace", cache_dir=None)
        for room in ROOMS:
            for name in plugin_names(room):
                if name not in NOT_STAGES:
                    write_text(folder / f"{name.replace('_', '-')}.txt", listing(graph, f"{room}.{name}"))


def listing(graph: grimp.ImportGraph, module: str) -> str:
    """A line for each file of the module's import closure."""
    modules = sorted({module, *graph.find_upstream_modules(module)})
    paths = [f"{name.replace('.', '/')}.py" for name in modules]
    return "".join(f"{file_digest(PROJECT / path)}  {path}\n" for path in paths)


if __name__ == "__main__":
    exit_cleanly(main)
