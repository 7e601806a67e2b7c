"""Does `retrace review` call figures from another kind of processor "within noise" of the committed ones?

Runs the pipeline on the sample from scratch in clones of the last commit, with libraries limited to fewer instructions
than the processor has. processors.json keeps each run's headline figures and the review's verdict.

    python benchmarks/processors.py "fp32, SSE" "bf16, AVX-512"
"""

import json
import subprocess
import tempfile
import time
from collections.abc import Mapping
from pathlib import Path

from harness import ROOT, plain_parser

from tests.toy import Project

RESULT = ROOT / "benchmarks" / "processors.json"
KINDS = {  # precision, and variables that limit the instructions
    "bf16, AMX": ("bf16", {"ONEDNN_MAX_CPU_ISA": "AVX512_CORE_AMX"}),
    "bf16, AVX-512": ("bf16", {"ONEDNN_MAX_CPU_ISA": "AVX512_CORE_BF16"}),
    "fp32, AVX-512": ("fp32", {"ONEDNN_MAX_CPU_ISA": "AVX512_CORE"}),
    "fp32, AVX2": ("fp32", {"ATEN_CPU_CAPABILITY": "avx2", "MKL_CBWR": "AVX2"}),
    "fp32, SSE": ("fp32", {"ATEN_CPU_CAPABILITY": "default", "MKL_CBWR": "SSE4_2"}),
}


def main() -> None:
    parser = plain_parser(__doc__)
    parser.add_argument("kinds", nargs="+", help=f"of {', '.join(KINDS)}, as the processor allows")
    for kind in parser.parse_args().kinds:
        with tempfile.TemporaryDirectory() as folder:
            found = run(Path(folder) / "project", *KINDS[kind])
        kept = json.loads(RESULT.read_text()) if RESULT.exists() else {}
        RESULT.write_text(json.dumps({**kept, kind: found}, indent=2) + "\n")
        print(kind, found["review"], sep=": ", flush=True)


def run(folder: Path, precision: str, variables: Mapping[str, str]) -> dict[str, object]:
    """The headline figures of a run from scratch, the review's verdict on them, and the seconds it took."""
    subprocess.run(["git", "clone", "--quiet", str(ROOT), str(folder)], check=True)
    project = Project(folder).with_variables(**variables, RETRACE_THREADS="2")
    project.set("precision", precision)
    began = time.perf_counter()
    subprocess.run(["dvc", "repro"], cwd=folder, env={**project.variables, "PYTHONPATH": str(folder)}, check=True)
    seconds = round(time.perf_counter() - began)
    review = project.stage("retrace.cli.main", "review", "--base", "HEAD", "--brief", code=None).stdout.strip()
    reports = ("metrics", "perplexity")
    figures = {name: json.loads((folder / f"reports/{name}.json").read_text()) for name in reports}
    return {"seconds": seconds, "review": review, **figures}


if __name__ == "__main__":
    main()
