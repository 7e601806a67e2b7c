"""A published study beside its run: published.yaml + what the other stages wrote → reports/study.json and its page.

study.json has every cell of the study's tables: the published figure, Retrace's, its interval and a verdict. The page,
reports/report.html, reports/report.md and reports/figures, shows them side by side, says what is wrong or
doubtful in the published report, and has all that the run gave. The HTML stands alone.

    accelerate launch --config_file ../../launch/one.yaml -m stages.study
"""

import argparse
from collections import Counter

from retrace.core.errors import exit_cleanly
from retrace.core.files import write_json
from retrace.core.guard import guarded
from retrace.core.paths import TASKS
from retrace.core.settings import read_params
from retrace.report.assemble import PREDICTIONS, REPORTS, WRITTEN, health_line, write_report
from retrace.study.page import about_section, compared_sections, doubts_section, set_up_sections
from retrace.study.published import PUBLISHED, read_published
from retrace.study.reports import compared_tables, doubt_facts, read_reports, run_sections, study_inputs
from retrace.study.sections import study_sections
from retrace.study.verdicts import compare_tables, notices, study_json

STUDY = REPORTS / "study.json"
SCORES = ("metrics", "scores", "perplexity")


def main() -> None:
    parser = argparse.ArgumentParser(description="Compare a run with the study that it repeats.")
    parser.add_argument("--small", action="store_true", help="the run is of small.yaml, not as published")
    params, profile = read_params(), "small" if parser.parse_args().small else "published"
    inputs = [PUBLISHED, TASKS, PREDICTIONS, *study_inputs(params), *(REPORTS / f"{name}.json" for name in SCORES)]
    with guarded("study", [*inputs, REPORTS / "curves", REPORTS / "runs"], params):
        study = read_published()
        reports = read_reports(params)
        compared = compare_tables(study, reports)
        wrong = doubts_section(doubt_facts(study, reports), notices(compared))
        sections = [
            about_section(study.title, study.introduction, study.source, profile),
            *compared_sections(compared_tables(study, compared)),
            *([] if wrong is None else [wrong]),
            *set_up_sections(study.differences, study.choices),
            *study_sections(study.sections, params),
            *run_sections(study, params, reports),
        ]
        write_json(STUDY, study_json(study, profile, compared))
        write_report(study.title, sections)
    verdicts = Counter(each.verdict for cells in compared.values() for each in cells)
    print(f"{WRITTEN}: " + ", ".join(f"{count} {verdict}" for verdict, count in verdicts.items()))
    print(health_line(reports.metrics, reports.perplexity or {}))


if __name__ == "__main__":
    exit_cleanly(main)
