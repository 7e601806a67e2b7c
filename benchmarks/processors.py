"""Does another kind of processor give a newcomer figures that `retrace review` calls no news beside the committed ones?

The pipeline on the sample, trained from nothing in clones of the last commit: in bf16 with AMX, in bf16 with AVX-512
alone, as oneDNN is told of nothing newer, and in fp32. Each run's headline figures, and the review's line, are kept in
processors.json.

    python benchmarks/processors.py ["bf16, AMX" "bf16, AVX-512" fp32]
"""

import json
import subprocess
import tempfile
import time
from pathlib import Path

from beside import ROOT, plain_parser

from tests.toy import Project

RESULT = ROOT / "benchmarks" / "processors.json"
KINDS = {  # precision, and the newest instructions that oneDNN may use
    "bf16, AMX": ("bf16", "AVX512_CORE_AMX"),
    "bf16, AVX-512": ("bf16", "AVX512_CORE_BF16"),
    "fp32": ("fp32", "AVX512_CORE"),
}


def main() -> None:
    parser = plain_parser(__doc__)
    parser.add_argument("kinds", nargs="*", default=list(KINDS), help=f"of {', '.join(KINDS)}")
    for kind in parser.parse_args().kinds:
        with tempfile.TemporaryDirectory() as folder:
            found = run(Path(folder) / "project", *KINDS[kind])
        kept = json.loads(RESULT.read_text()) if RESULT.exists() else {}
        RESULT.write_text(json.dumps({**kept, kind: found}, indent=2) + "\n")
        print(kind, found["review"], sep=": ", flush=True)


def run(folder: Path, precision: str, instructions: str) -> dict[str, object]:
    """The headline figures of a run from nothing, what the review says of them, and the seconds that it took."""
    subprocess.run(["git", "clone", "--quiet", str(ROOT), str(folder)], check=True)
    project = Project(folder).with_variables(ONEDNN_MAX_CPU_ISA=instructions, RETRACE_THREADS="2")
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
