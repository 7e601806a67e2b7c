"""Malformed input of every kind for every reader: `python -m tests.campaigns.bad_input [--seeds 2]`.

Files are derived from valid ones with a seed. Each must be accepted with as many rows as it has, or refused in one line
that names the place; none may end in a traceback, take 10 seconds or a gigabyte, or lose a row. A few also go through
the command line. Prints counts by reader and kind of fault, and what was not as expected.
"""

import argparse
import shutil
import sys
import tempfile
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
THROUGH = 12  # of the cases go through a stage or `retrace check` too


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=2, help="number of seeds, from 0 on")
    seeds = range(parser.parse_args().seeds)
    cases = [case for seed in seeds for of in READERS for case in of(Random(f"{seed} {of.__name__}"))]
    outcomes = list(run_cases(cases))
    failed = [
        f"{case.reader}, {case.fault}: {of.problem}" for case, of in zip(cases, outcomes, strict=True) if of.problem
    ]
    faults, readers = (pd.Series([getattr(case, name) for case in cases], name=name) for name in ("fault", "reader"))
    print(pd.crosstab(faults, readers, margins=True, margins_name="all").to_string())
    print(*failed, sep="\n\n")
    most = f"at most {max(of.seconds for of in outcomes):.1f} s and {max(of.mib for of in outcomes)} MiB"
    print(f"{len(cases) - len(failed)} of {len(cases)} as expected; {most}")
    through = [case for case in cases if case.reader not in ("text", "SST-2", "published.yaml")]
    drawn = Random(0).sample(through, THROUGH)
    with tempfile.TemporaryDirectory() as folder:
        project = copy_as_it_is(Path(folder))
        said = [f"{case.reader}, {case.fault}: {at_the_command_line(project, case)}" for case in drawn]
    ends = [line for line in said if not line.endswith(": ")]
    print(*ends, sep="\n\n")
    print(f"{len(drawn) - len(ends)} of {len(drawn)} as expected at the command line")
    sys.exit(bool(failed + ends))


def at_the_command_line(project: Project, case: Case) -> str:
    """What is wrong with how a stage, or `retrace check`, ends with this input; empty if nothing is."""
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
    right = done.returncode == 0
    if not isinstance(case.expected, int):
        is_line = done.stderr.startswith("error: ") and done.stderr.count("\n") == 1
        right = done.returncode == 2 and is_line and any(said in done.stderr for said in case.expected)
    return "" if right else f"exit code {done.returncode}: {done.stderr}"


if __name__ == "__main__":
    main()
