"""Malformed input of every kind for every reader: `python -m tests.campaigns.bad_input [--seeds 3]`.

Files are made from valid ones by a seed. Each is accepted with as many rows as it has, or refused in one line that
names the place; none ends in a traceback, takes 10 seconds or a gigabyte, or loses a row. A few go through the command
line as well. Prints how many there were by reader and kind of fault, and what was not as expected.
"""

import argparse
import shutil
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from random import Random

import pandas as pd

from retrace.core.settings import DATA_PARAMS, PARAMS
from retrace.hub.pins import folder_digest
from tests.campaigns.bad_documents import checkpoint_cases, question_cases, xml_cases
from tests.campaigns.bad_files import json_line_cases, parquet_cases, sentence_cases, task_cases, text_cases
from tests.campaigns.bad_settings import file_cases, settings_cases
from tests.campaigns.cases import Case, run_cases
from tests.toy import Project, copy_as_it_is, copy_settings

READERS = (
    text_cases, sentence_cases, task_cases, json_line_cases, parquet_cases, xml_cases, question_cases, checkpoint_cases,
    file_cases, settings_cases,
)  # fmt: skip


def every_case(seed: int) -> Iterator[Case]:
    """All cases of a seed."""
    for cases in READERS:
        yield from cases(Random(f"{seed} {cases.__name__}"))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=2, help="so many times over, from 0 on")
    parser.add_argument(
        "--readers", nargs="+", metavar="NAME", help="text, SST-2, tsv, … as in the table; all if absent"
    )
    parser.add_argument(
        "--command-line", type=int, default=12, help="so many of them as a stage or `retrace check` too"
    )
    arguments = parser.parse_args()
    cases = [case for seed in range(arguments.seeds) for case in every_case(seed)]
    cases = [case for case in cases if arguments.readers is None or case.reader in arguments.readers]
    failed, slowest, largest = [], 0.0, 0
    for case, outcome in zip(cases, run_cases(cases), strict=True):
        slowest, largest = max(slowest, outcome.seconds), max(largest, outcome.mib)
        if outcome.problem:
            failed.append(f"{case.reader}, {case.fault}: {outcome.problem}")
    faults, readers = (pd.Series([getattr(case, name) for case in cases], name=name) for name in ("fault", "reader"))
    print(pd.crosstab(faults, readers, margins=True, margins_name="all").to_string())
    print(*failed, sep="\n\n")
    print(f"{len(cases) - len(failed)} of {len(cases)} as expected; at most {slowest:.1f} s and {largest} MiB")
    through = [case for case in cases if case.reader not in ("text", "SST-2", "published.yaml")]
    drawn = Random(0).sample(through, min(arguments.command_line, len(through)))
    with tempfile.TemporaryDirectory() as folder:
        project = copy_as_it_is(Path(folder))
        ends = [
            f"{case.reader}, {case.fault}: {said}" for case in drawn if (said := at_the_command_line(project, case))
        ]
    print(*ends, sep="\n\n")
    print(f"{len(drawn) - len(ends)} of {len(drawn)} as expected at the command line")
    failed += ends
    sys.exit(bool(failed))


def at_the_command_line(project: Project, case: Case) -> str:
    """What is wrong with how a stage, or `retrace check`, ends with this input; empty where nothing is."""
    own = Path("data/own/case")
    is_settings = case.reader in (str(PARAMS), str(DATA_PARAMS))
    folder = project.folder if is_settings else project.folder / own
    if not is_settings:
        shutil.rmtree(folder, ignore_errors=True)
        copy_settings(project.folder)
    case.lay_out(folder)
    if is_settings:
        done = project.stage("retrace.cli.main", "check", code=None)
    elif case.reader in ("tokenizer", "checkpoint"):
        checkpoint = f"{own}/model@{folder_digest(folder / 'model')}"
        project.set_all({"family": "bert", "model.checkpoint": checkpoint})
        done = project.stage("sources.model", code=None)
    else:
        kind = "question_answering" if case.reader == "SQuAD" else "classification"
        entry = {"folder": str(own), "train": case.name, "dev": next(iter(case.beside))}
        entry |= {"label": "polarity"} if case.reader == "SemEval xml" else {}
        project.set(kind, {"own": entry})
        done = project.stage("sources.task", kind, "--task", "own", code=None)
    if isinstance(case.expected, int):
        return "" if done.returncode == 0 else f"exit code {done.returncode}: {done.stderr}"
    is_line = done.stderr.startswith("error: ") and done.stderr.count("\n") == 1
    fits = any(said in done.stderr for said in case.expected)
    return "" if (done.returncode, is_line, fits) == (2, True, True) else f"exit code {done.returncode}: {done.stderr}"


if __name__ == "__main__":
    main()
