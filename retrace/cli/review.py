"""`retrace review`: what a change does to the results."""

from typing import Annotated

import typer

from retrace.cli.dvc_files import dvc_config
from retrace.core.errors import printable
from retrace.core.paths import require_checkout
from retrace.review.changes import review as compare
from retrace.review.revision import Revision, commit_of, default_base
from retrace.review.text import as_markdown, verdict


def review(
    base: Annotated[str | None, typer.Option(metavar="REV", help="a commit, branch or tag")] = None,
    brief: Annotated[bool, typer.Option("--brief", help="print only the verdict, in one line")] = False,
) -> None:
    """Print, as Markdown, how the results here differ from those of REV: the verdict, which differences count, and why.

    By default, REV is the commit where the branch left the default branch of origin (or main, master), or where it left
    that branch here, if that is later. On that branch itself, it is the last commit.

    A difference counts if its 95% interval excludes 0. If DVC has both revisions' predictions, the interval is
    computed from the models' answers to the same examples, paired by seed; else from the spread over seeds. One seed
    says nothing about others, so with one seed the difference must also exceed review.tolerance of params.yaml; with
    neither predictions nor several seeds, the tolerance alone decides. Figures, flags, settings, time and memory are
    read from DVC, so commit or run dvc repro first.

    Exit code 1 if a figure that models are judged by got worse beyond the noise and by more than the tolerance.
    """
    require_checkout()
    dvc_config()  # for its errors; otherwise nothing that DVC reads would seem to be here
    name, what = (base, "") if base is not None else default_base()
    commit = commit_of(name)
    shown = f"{commit[:10]}, {what}" if what else f"{name} ({commit[:10]})"
    found = compare(Revision(commit), Revision())
    print(printable(f"compared with {shown}: {verdict(found)}") if brief else as_markdown(found, shown))
    if found.has_failed:
        raise typer.Exit(1)
