"""Does the sample give the same results from every seed, in bf16 and fp32, in one process and in two?

Runs pretraining and both tasks from each seed, which determines weights, masks and data order. The settings were chosen
on the corpora of sample.seed 1 and 2; `--corpus 5` is another, on which nothing was chosen. Results go to seeds.csv,
with separate rows for each kind of processor.

    python benchmarks/seeds.py
"""

import os
import shutil
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from itertools import product
from pathlib import Path

import pandas as pd
import torch
from harness import ROOT, TORCHRUN, plain_parser

from retrace.evaluation.records import METRICS, Metrics
from tests.toy import Project, copy_as_it_is

RESULT = ROOT / "benchmarks" / "seeds.csv"
RUN = ["corpus", "task", "method", "precision", "processor", "processes", "seed"]
LIMIT = 3 * 3600  # seconds that a stage may take: some processors are slow
FIGURES = {"sst2": ["accuracy"], "squad": ["f1", "HasAns_f1", "NoAns_f1"]}


def main() -> None:
    parser = plain_parser(__doc__)
    parser.add_argument("--seeds", type=int, nargs="+", default=[1, 2, 3, 4, 5])
    parser.add_argument("--precisions", nargs="+", default=["bf16", "fp32"])
    parser.add_argument("--processes", type=int, nargs="+", default=[1, 2])
    parser.add_argument("--methods", nargs="+", default=["full", "scratch"])
    parser.add_argument("--corpus", type=int, default=1, help="sample.seed")
    parser.add_argument("--side-by-side", type=int, default=2, help="runs at a time, each with one thread a process")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder, ThreadPoolExecutor(arguments.side_by_side) as pool:
        project = copy_as_it_is(Path(folder) / "project").with_variables(RETRACE_THREADS="1", ACCELERATE_USE_CPU="1")
        project.set_all({"sample.seed": arguments.corpus, "metrics.bootstrap_samples": 100})
        for grid in ("methods", "squad_methods"):
            project.set(f"finetune.{grid}", arguments.methods)
        for command in ("sources.sample", "sources.model", "tokenize"):
            project.stage(command)
        cases = product(arguments.precisions, arguments.processes, arguments.seeds)
        for found in pool.map(lambda case: run(project, *case), cases):
            keep(found)
    print(summary(pd.read_csv(RESULT)).to_string())


def run(prepared: Project, precision: str, processes: int, seed: int) -> list[dict[str, object]]:
    """The figures of one seed: a row for each task and method, and the baselines'."""
    folder = prepared.folder.with_name(f"{precision}-{processes}-{seed}")
    shutil.copytree(prepared.folder, folder)
    project = Project(folder, prepared.variables, seconds=LIMIT)
    project.set_all({"precision": precision, "seed": seed, "finetune.seeds": [seed]})
    launcher = [sys.executable, *([*TORCHRUN, str(processes)] if processes > 1 else []), "-m"]
    project.run(*launcher, "stages.pretrain")
    methods = project.params()["finetune"]["methods"]
    for task, method in product(FIGURES, methods):
        project.run(*launcher, f"stages.finetune_{task}", "--task", task, "--method", method, "--seed", str(seed))
    project.stage("evaluate")
    scored, corpus = Metrics.read(folder / METRICS).tasks, project.params()["sample"]["seed"]
    shutil.rmtree(folder)
    where = {"corpus": corpus, "precision": precision, "processor": processor(), "processes": processes, "seed": seed}
    rows = [
        {**where, "task": task, "method": name} | {figure: details[figure] for figure in figures if figure in details}
        for task, figures in FIGURES.items()
        for name, details in (scored[task].methods | scored[task].baselines).items()
    ]
    print(*rows, sep="\n", file=sys.stderr, flush=True)
    return rows


def processor() -> str:
    """The newest matrix instructions in use, which determine how bf16 is rounded."""
    known = {"amx_tile": "AMX", "avx512_bf16": "AVX-512 bf16", "avx512_f": "AVX-512"}
    supported = torch.cpu.get_capabilities()
    newest = next((name for flag, name in known.items() if supported.get(flag)), "AVX2")
    return os.environ.get("ONEDNN_MAX_CPU_ISA", newest)


def keep(found: list[dict[str, object]]) -> None:
    """Add the rows of a run to those of earlier ones, in place of the same run's."""
    earlier = [pd.read_csv(RESULT)] if RESULT.exists() else []
    rows = pd.concat([*earlier, pd.DataFrame(found)])
    rows = rows.drop_duplicates(RUN, keep="last").sort_values(RUN)
    rows.to_csv(RESULT, index=False, float_format="%.6g")


def summary(rows: pd.DataFrame) -> pd.DataFrame:
    """Mean, standard deviation, least and greatest of every method's figures over the seeds of each kind of run."""
    figures = list(dict.fromkeys(figure for listed in FIGURES.values() for figure in listed))
    long = rows.melt(RUN, figures, "figure").dropna()
    return long.groupby([*RUN[:-1], "figure"]).value.agg(["count", "mean", "std", "min", "max"]).round(4)


if __name__ == "__main__":
    main()
