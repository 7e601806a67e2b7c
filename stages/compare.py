"""A published study beside its run: published.yaml + what the other stages wrote → reports/study.json and its page.

study.json has every cell of the study's tables: the published figure, Retrace's, its interval and a verdict. The page,
reports/study/report.html and report.md with figures, shows them side by side, says what is wrong or doubtful in the
published report, and shows the whole run. The HTML stands alone.

    python -m stages.compare --published studies/bert-wikitext2/published.yaml --run small
"""

import argparse
from collections import Counter
from pathlib import Path

from retrace.core.errors import exit_cleanly
from retrace.core.guard import guarded
from retrace.core.paths import TASKS
from retrace.core.settings import read_params
from retrace.evaluation.records import DETAILS, METRICS, Metrics
from retrace.perplexity.measures import PERPLEXITY, PerplexityReport
from retrace.report.blocks import REPORTS, write_report
from retrace.report.samples import PREDICTIONS
from retrace.report.scores import flags_line
from retrace.study.page import study_sections
from retrace.study.published import read_published
from retrace.study.reports import evidence_texts, read_reports, run_sections, study_inputs
from retrace.study.result import StudyResult
from retrace.study.sections import size_sections
from retrace.study.verdicts import compare_tables, notices

PAGE = REPORTS / "study"


def main() -> None:
    arguments = _arguments()
    params, path = read_params(), arguments.published
    inputs = [path, TASKS, PREDICTIONS, *study_inputs(params), METRICS, DETAILS, PERPLEXITY]
    with guarded("compare", [*inputs, REPORTS / "curves", REPORTS / "runs"], params):
        study, reports = read_published(path), read_reports(params)
        result = StudyResult(study.title, study.source, arguments.run == "small", compare_tables(study, reports))
        noticed = notices({table.name: table.cells() for table in study.tables})
        sections = [
            *study_sections(study, result, evidence_texts(study, reports), noticed),
            *size_sections(study.sections, params),
            *run_sections(study, params, reports),
        ]
        result.write()
        write_report(study.title, sections, PAGE)
    verdicts = Counter(cell.verdict for *_, cell in result.cells())
    print(f"{PAGE / 'report.html'}: " + ", ".join(f"{count} {verdict}" for verdict, count in verdicts.items()))
    print(flags_line(Metrics.read(METRICS), PerplexityReport.read(PERPLEXITY) if reports.perplexity else None))


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--published", required=True, type=Path, help="what the report printed")
    parser.add_argument("--run", required=True, choices=("published", "small"))
    return parser.parse_args()


if __name__ == "__main__":
    exit_cleanly(main)
