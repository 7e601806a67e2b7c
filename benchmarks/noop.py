"""How long `dvc repro` takes with nothing to do, compared with an empty pipeline of as many stages.

Run in a project whose pipeline is up to date; both sides are run in turn, seven times, and their medians compared.

    python benchmarks/noop.py
"""

import json
import os
import statistics
import subprocess
import tempfile
import time
from pathlib import Path

from harness import seconds_in_turn

ROUNDS = 7


def main() -> None:
    # As the project's .dvc/config says. Otherwise every call in the empty pipeline would start a process that sends a
    # report, which would run beside the next call.
    os.environ["DVC_NO_ANALYTICS"] = "true"
    looked_at = subprocess.run(["dvc", "repro"], capture_output=True, text=True, check=True)
    stages = sum(line.startswith("Stage ") for line in looked_at.stdout.splitlines())
    with tempfile.TemporaryDirectory() as folder:
        empty = Path(folder)
        make_empty(empty, stages)
        sides = {"pipeline": lambda: repro(Path.cwd()), "empty": lambda: repro(empty)}
        result: dict[str, object] = {"stages": stages}
        for measure, clock in (("seconds", time.perf_counter), ("processor_seconds", processor_seconds)):
            here, there = map(statistics.median, seconds_in_turn(sides, ROUNDS, clock).values())
            result[measure] = {"pipeline": round(here, 3), "empty": round(there, 3), "ratio": round(here / there, 3)}
    print(json.dumps(result, indent=2))


def processor_seconds() -> float:
    """Processor time of the processes started here that have ended."""
    used = os.times()
    return used.children_user + used.children_system


def make_empty(folder: Path, stages: int) -> None:
    """A pipeline of stages, run once, each of which writes a small file from the one before."""
    lines = ["stages:"]
    for number in range(stages):
        lines += [f"  s{number}:", f"    cmd: echo {number} > {number}.txt", f"    outs: [{number}.txt]"]
        lines += [f"    deps: [{number - 1}.txt]"] if number else []
    (folder / "dvc.yaml").write_text("\n".join(lines) + "\n")
    for command in (["git", "init", "-q"], ["dvc", "init", "-q"], ["dvc", "repro", "-q"]):
        subprocess.run(command, cwd=folder, check=True)


def repro(folder: Path) -> None:
    """`dvc repro` with nothing to do."""
    done = subprocess.run(["dvc", "repro"], cwd=folder, capture_output=True, text=True, check=True)
    if "Running stage" in done.stdout:
        raise SystemExit(f"{folder}: the pipeline was not up to date")


if __name__ == "__main__":
    main()
