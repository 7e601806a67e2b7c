"""The report: scores, curves, runs and predictions → reports/report.html, reports/report.md, reports/figures.

The HTML is one self-contained file that can be mailed or put on a server. report.md has the same sections for reading
on GitHub, without the search of predictions.

    python -m stages.report
"""

from retrace.core.errors import exit_cleanly
from retrace.core.files import file_digest
from retrace.core.guard import guarded
from retrace.core.paths import PRETRAINED, QUESTIONS, TASKS, TEXT, checkpoint_facts
from retrace.core.records import SOURCES
from retrace.core.weights import parameters_by_module, weight_files
from retrace.evaluation.records import DETAILS, Details
from retrace.perplexity.measures import PERPLEXITY_DETAILS, PerplexityReport
from retrace.report import runs
from retrace.report.blocks import Head, Section
from retrace.report.browser import predictions_section
from retrace.report.flags import flag_warnings, flags_text, found_flags
from retrace.report.page import REPORTS, write_report
from retrace.report.pretraining import pretraining_section
from retrace.report.results import judged, read_curve, read_tasks, seconds_of, shares_of
from retrace.report.summary import run_facts, same_start_as_full, summary_sections, verdict
from retrace.report.tasks import task_section
from retrace.results.grid import PREDICTIONS
from retrace.results.predictions import BASELINES


def main() -> None:
    settings = runs.ReportParams.read()
    params = settings.params
    inputs = [TEXT, TASKS, QUESTIONS, PREDICTIONS, PRETRAINED, DETAILS, PERPLEXITY_DETAILS, BASELINES]
    with guarded("report", [*inputs, REPORTS / "curves", REPORTS / "runs", SOURCES], settings.settings):
        details, perplexity = Details.read(DETAILS), PerplexityReport.read(PERPLEXITY_DETAILS)
        tasks, records = read_tasks(details, params), runs.read_runs(params)
        stages = runs.read_stages(SOURCES) | runs.read_stages()
        shares, flags = shares_of(records), found_flags(details, perplexity)
        said = verdict(judged(tasks), perplexity, same_start_as_full(shares, params["methods"]))
        origins = {name: record.origin for name, record in {**records, **stages}.items()}
        counts = parameters_by_module(PRETRAINED)
        hashed = [*(PRETRAINED / name for name in weight_files(PRETRAINED)), DETAILS, PERPLEXITY_DETAILS]
        digests = {path.as_posix(): file_digest(path) for path in hashed}
        folds = [
            runs.time_fold(records, stages, params),
            runs.data_fold(params),
            *runs.models_folds({"": (checkpoint_facts(PRETRAINED), counts)}, records),
            runs.settings_fold(settings.all),
            runs.origin_fold(origins, digests),
        ]
        epochs, updates = read_curve("pretrain/epochs"), read_curve("pretrain/updates")
        sections = [
            *summary_sections(tasks, shares, seconds_of(records)),
            pretraining_section(perplexity, epochs, updates, records["pretrain"]),
            *(task_section(task, list(details.tasks)) for task in tasks),
            predictions_section(params, tasks),
            Section("Data and runs", folds),
        ]
        head = Head(said, run_facts(params, records, sum(counts.values())), flag_warnings(flags))
        write_report(f"Report: {params['family']} on {params['data']} data", sections, head=head)
    print(f"the report is in {REPORTS / 'report.html'} and {REPORTS / 'report.md'}")
    print(flags_text(flags))


if __name__ == "__main__":
    exit_cleanly(main)
