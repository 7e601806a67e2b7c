"""Malformed input of every kind for every reader: `python -m tests.campaigns.bad_input [--seeds 2]`.

Files are derived from valid ones with a seed. Each must be accepted with as many rows as it has, or refused in one line
that names the place; none may end in a traceback, take 10 seconds or a gigabyte, or lose a row. Prints counts by reader
and kind of fault, and what was not as expected.
"""

import argparse
import sys
from random import Random

import pandas as pd

from tests.campaigns.bad_documents import checkpoint_cases, question_cases, xml_cases
from tests.campaigns.bad_files import json_line_cases, parquet_cases, sentence_cases, task_cases, text_cases
from tests.campaigns.bad_settings import file_cases, settings_cases
from tests.campaigns.cases import run_cases

READERS = (
    text_cases, sentence_cases, task_cases, json_line_cases, parquet_cases, xml_cases, question_cases, checkpoint_cases,
    file_cases, settings_cases,
)  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=2, help="number of seeds, from 0 on")
    seeds = range(parser.parse_args().seeds)
    cases = [case for seed in seeds for reader in READERS for case in reader(Random(f"{seed} {reader.__name__}"))]
    outcomes = list(run_cases(cases))
    failed = [
        f"{case.reader}, {case.fault}: {end.problem}" for case, end in zip(cases, outcomes, strict=True) if end.problem
    ]
    faults, readers = (pd.Series([getattr(case, name) for case in cases], name=name) for name in ("fault", "reader"))
    print(pd.crosstab(faults, readers, margins=True, margins_name="all").to_string())
    print(*failed, sep="\n\n")
    most = f"at most {max(end.seconds for end in outcomes):.1f} s and {max(end.mib for end in outcomes)} MiB"
    print(f"{len(cases) - len(failed)} of {len(cases)} as expected; {most}")
    sys.exit(bool(failed))


if __name__ == "__main__":
    main()
