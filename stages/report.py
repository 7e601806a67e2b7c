"""The report: scores, curves, runs and predictions → reports/report.html, reports/report.md, reports/figures.

The HTML stands alone: it can be mailed or put on a server as one file.

    python -m stages.report
"""

from pathlib import Path

from retrace.core.errors import exit_cleanly
from retrace.core.files import read_json
from retrace.core.guard import guarded
from retrace.core.paths import CHECKPOINT, QUESTIONS, TASKS, checkpoint_facts, source_folder
from retrace.core.weights import parameters_by_module
from retrace.evaluation.records import DETAILS, Details
from retrace.perplexity.measures import DETAILS as PERPLEXITY
from retrace.perplexity.measures import PerplexityReport
from retrace.report.blocks import REPORTS, WRITTEN, write_report
from retrace.report.perplexity import perplexity_section
from retrace.report.samples import PREDICTIONS, samples_section
from retrace.report.scores import flags_line, read_curve, score_sections
from retrace.report.settings import ReportParams, data_section, models_section, read_runs, settings_section

MODEL = Path("models/pretrained")
TITLE = "Retrace report"


def main() -> None:
    read = ReportParams.read()
    params, source = read.params, source_folder(read.data)
    inputs = [source, TASKS, QUESTIONS, CHECKPOINT, PREDICTIONS, MODEL, DETAILS, PERPLEXITY]
    with guarded("report", [*inputs, REPORTS / "curves", REPORTS / "runs"], read.settings):
        details, perplexity = Details.read(DETAILS), PerplexityReport.read(PERPLEXITY)
        sections = [
            *score_sections(details),
            perplexity_section(perplexity, read_curve("pretrain")),
            samples_section(params, source),
            data_section(read_json(source / "card.json"), params),
            models_section({"": (checkpoint_facts(), parameters_by_module(MODEL))}, read_runs(params)),
            settings_section(params | {read.data: read.source}),
        ]
        write_report(TITLE, sections)
    print(WRITTEN)
    print(flags_line(details, perplexity))


if __name__ == "__main__":
    exit_cleanly(main)
