"""A published study and its run: published.yaml + what the other stages wrote → reports/study.json and its page.

study.json has every cell of the study's tables: the published figure, Retrace's, its interval and a verdict. The page,
reports/study/report.html and report.md with figures, shows them side by side, names errors and doubts in the published
report, and shows the whole run. The HTML file is self-contained.

    python -m stages.compare --published studies/bert-wikitext2/published.yaml --run small
"""

import argparse
from collections import Counter
from pathlib import Path

from retrace.core.errors import exit_cleanly
from retrace.core.files import write_json
from retrace.core.guard import guarded
from retrace.core.settings import build_file, read_params
from retrace.evaluation.records import DETAILS
from retrace.perplexity.measures import PERPLEXITY_DETAILS
from retrace.report.blocks import Head
from retrace.report.flags import flag_warnings, flags_text, found_flags
from retrace.report.page import REPORTS, write_report
from retrace.results.grid import PREDICTIONS
from retrace.results.predictions import BASELINES
from retrace.study.comparison import Reports, compare_tables, evidence
from retrace.study.page import run_sections, study_inputs, study_sections
from retrace.study.published import RESULT, PublishedStudy, StudyResult
from retrace.study.sections import size_sections

PAGE = REPORTS / "study"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--published", required=True, type=Path, help="the published figures")
    parser.add_argument("--run", required=True, choices=("published", "small"))
    arguments = parser.parse_args()
    params, path = read_params(), arguments.published
    inputs = [path, PREDICTIONS, BASELINES, *study_inputs(params), DETAILS, PERPLEXITY_DETAILS]
    with guarded("compare", [*inputs, REPORTS / "curves", REPORTS / "runs"], params):
        study, reports = build_file(PublishedStudy, path), Reports.read(params)
        is_small, tables = arguments.run == "small", compare_tables(study, reports)
        result = StudyResult(title=study.title, source=study.source, small=is_small, tables=tables)
        sections = [
            *study_sections(study, result, evidence(study, reports)),
            *size_sections(study.sections, params),
            *run_sections(study, reports),
        ]
        write_json(RESULT, result.to_json())
        flags = found_flags(reports.details, reports.perplexity)
        write_report(study.title, sections, PAGE, Head(warnings=flag_warnings(flags)))
    verdicts = Counter(cell.verdict for *_, cell in result.cells())
    print(f"{PAGE / 'report.html'}: " + ", ".join(f"{count} {verdict}" for verdict, count in verdicts.items()))
    print(flags_text(flags))


if __name__ == "__main__":
    exit_cleanly(main)
