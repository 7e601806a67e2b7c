"""The whole loop on the local hub, step by step: data from it, a toy model, publishing, loading the model back.

python -m tests.hub.demo FOLDER: each command is printed as one would type it, then the end of its output. FOLDER is
new; the copy of the project in it stays.
"""

import argparse
import os
import shlex
import sys
from dataclasses import replace
from pathlib import Path

from datasets import disable_progress_bars

from retrace.core.settings import file_of
from tests.hub import WRITE_TOKEN, LocalHub
from tests.hub.content import add_datasets
from tests.hub.content.datasets import GLUE, SQUAD, WIKITEXT
from tests.reloading import lines_of
from tests.toy import Project, copy_project

NAME, SHOWN = "org/reviews", 12  # lines of what a command says
PREDICT = """
given = tokenizer("the hall was charming and the ale was fine .", return_tensors="pt")
print(model.config.id2label[model(**given).logits.argmax().item()])
"""


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m tests.hub.demo", description=__doc__)
    parser.add_argument("folder", type=Path)
    folder = parser.parse_args().folder
    disable_progress_bars()
    with LocalHub(folder / "hub") as hub:
        project = copy_project(folder / "project", git=True)
        user = replace(project, variables=hub.environment(folder / "home", WRITE_TOKEN))
        _say(f"export HF_ENDPOINT={hub.endpoint} HF_TOKEN={WRITE_TOKEN}")
        _say(f"cd {project.folder}   # a copy of this project at toy size")
        pins, parts = add_datasets(hub), {"text": WIKITEXT, "sst2": GLUE, "squad": SQUAD}
        chosen = {f"hub.{part}.repository": f"{name}@{pins[name]}" for part, name in parts.items()}
        chosen |= {"data": "hub", "finetune.methods": ["full"]}
        for key, value in chosen.items():
            _say(f"# {file_of(key)}: {key}: {value}")
        project.set_all(chosen)
        _type(user, "dvc", "repro")
        _say("git commit -am 'Toy model on data of the hub'")
        project.commit("Toy model on data of the hub")
        for push in ((), ("--push", "--even-if", "unlearned"), ("--push", "--even-if", "unlearned")):
            _type(user, "retrace", "publish", NAME, "--task", "sst2", *push)
        lines = lines_of(hub.files("model", NAME)["README.md"].decode()) + PREDICT
        _type(replace(user, variables=hub.environment(folder / "another-home")), "python", "-c", lines)
        print(f"\n{len(hub.requests)} requests, {len(hub.unserved)} not served; {len(hub.outside)} beyond this machine")


def _say(line: str) -> None:
    print(f"\n$ {line}", flush=True)


def _type(user: Project, *command: str) -> None:
    """Print a command as one types it, run it and show the end of its output."""
    program, *arguments = command
    _say(" ".join([program, *map(shlex.quote, arguments)]))
    python = {"retrace": (sys.executable, "-m", "retrace.cli.main"), "python": (sys.executable,)}
    done = user.run(*python.get(program, (program,)), *arguments)
    print(*(done.stdout or done.stderr).splitlines()[-SHOWN:], sep=os.linesep, flush=True)


if __name__ == "__main__":
    main()
