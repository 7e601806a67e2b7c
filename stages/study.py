"""A published study beside its run: published.yaml + what the other stages wrote → reports/study.json and its page.

study.json has every cell of the study's tables: the published figure, Retrace's, its interval and a verdict. The page,
reports/report.html, reports/report.md and reports/figures, shows them side by side, says what is wrong or
doubtful in the published report, and has all that the run gave. The HTML stands alone.

    accelerate launch --config_file ../../launch/one.yaml -m stages.study
"""

from collections import Counter

from stages.corpus.source import TASKS
from stages.harness.errors import exit_cleanly
from stages.harness.guard import guarded
from stages.harness.records import write_json
from stages.harness.settings import check_value, read_params
from stages.metrics.notices import notices
from stages.metrics.published import PUBLISHED, read_published
from stages.metrics.verdicts import compare_tables, study_json
from stages.pages.study_page import about_section, compared_sections, doubts_section, set_up_sections
from stages.training.reports import PREDICTIONS, REPORTS, WRITTEN, health_line, write_report
from stages.training.study_reports import compared_tables, doubt_facts, read_reports, run_sections, study_inputs
from stages.training.study_sections import study_sections

STUDY = REPORTS / "study.json"
SCORES = ("metrics", "scores", "perplexity")


def main() -> None:
    params = read_params()
    profile = check_value(params, "profile", str)
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
