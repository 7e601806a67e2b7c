"""The report: scores, curves, runs and predictions → reports/report.html, reports/report.md, reports/figures.

The HTML stands alone: it can be mailed or put on a server as one file, and fetches nothing. report.md has the same
verdict and summary, for reading on a forge.

    python -m stages.report
"""

from pathlib import Path

from retrace.core.errors import exit_cleanly
from retrace.core.files import file_digest, read_json
from retrace.core.guard import guarded
from retrace.core.origin import SOURCES
from retrace.core.paths import CHECKPOINT, QUESTIONS, TASKS, checkpoint_facts, source_folder
from retrace.core.weights import parameters_by_module, weight_files
from retrace.evaluation.records import DETAILS, Details
from retrace.perplexity.measures import DETAILS as PERPLEXITY
from retrace.perplexity.measures import PerplexityReport
from retrace.report.blocks import Head
from retrace.report.browser import PRINTED, predictions_section, read_all
from retrace.report.page import REPORTS, WRITTEN, write_report
from retrace.report.pretraining import pretraining_section, tokens_and_losses
from retrace.report.results import PREDICTIONS, judged, read_curve, read_tasks
from retrace.report.runs import (
    data_fold,
    models_folds,
    origin_fold,
    read_pinned,
    read_runs,
    read_stages,
    runs_section,
    seconds_of,
    settings_fold,
    shares_of,
    time_fold,
)
from retrace.report.settings import PRESETS, ReportParams, read_presets
from retrace.report.summary import flag_chips, flags_line, found_flags, run_facts, summary_sections, verdict
from retrace.report.tasks import task_section
from retrace.results.predictions import BASELINES

MODEL = Path("models/pretrained")


def main() -> None:
    read = ReportParams.read()
    params, source = read.params, source_folder(read.data)
    inputs = [source, TASKS, QUESTIONS, CHECKPOINT, PREDICTIONS, MODEL, DETAILS, PERPLEXITY, BASELINES, PRESETS]
    with guarded("report", [*inputs, REPORTS / "curves", REPORTS / "runs", SOURCES], read.settings):
        details, perplexity = Details.read(DETAILS), PerplexityReport.read(PERPLEXITY)
        tasks, runs = read_tasks(details, params), read_runs(params)
        stages = read_stages(SOURCES) | read_stages()
        shares, flags = shares_of(runs), found_flags(details, perplexity)
        said = verdict(judged(tasks), perplexity, shares)
        origins = {name: of.origin for name, of in {**runs, **stages}.items() if of.origin}
        counts = parameters_by_module(MODEL)
        hashed = [*(MODEL / name for name in weight_files(MODEL)), DETAILS, PERPLEXITY]
        folds = [
            time_fold(runs, stages, params),
            data_fold(read_json(source / "card.json"), params),
            *models_folds({"": (checkpoint_facts(), counts)}, runs),
            settings_fold(params | {read.data: read.source}, read_presets()),
            origin_fold(origins, {path.as_posix(): file_digest(path) for path in hashed}, read_pinned(params)),
        ]
        sections = [
            *summary_sections(tasks, shares, seconds_of(runs)),
            pretraining_section(perplexity, read_curve("pretrain"), *tokens_and_losses(runs.get("pretrain"))),
            *(task_section(task, list(details.tasks)) for task in tasks),
            predictions_section(read_all(params, source), tasks, PRINTED if read.report.samples == "first" else None),
            runs_section(folds),
        ]
        head = Head(said, run_facts(params, runs, sum(counts.values())), flag_chips(flags))
        write_report(f"Report: {params['family']} on {read.data} data", sections, head=head)
    print(WRITTEN)
    print(flags_line(flags))


if __name__ == "__main__":
    exit_cleanly(main)
