"""`retrace records`: the page docs/records.md, made of the runs that studies/*/records.yaml has."""

from retrace.cli.study import project_folder
from retrace.study.records import records_page


def records() -> None:
    """Print what fixed budgets reached, run by run, as Markdown, which is docs/records.md.

    `retrace study record` adds a finished run.
    """
    print(records_page(project_folder()), end="")
