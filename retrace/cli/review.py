"""`retrace review`: what a change does to the results."""

import json
from typing import Annotated

import typer

from retrace.cli.repro import require_checkout
from retrace.review.changes import review as compare
from retrace.review.revision import Revision, commit_of, default_base
from retrace.review.text import as_json, as_markdown, verdict


def review(
    base: Annotated[
        str | None,
        typer.Option(
            metavar="REV",
            help="a commit, branch or tag; if absent, where the branch left the default branch of origin (or main, "
            "master), and on that branch itself the last commit",
        ),
    ] = None,
    as_values: Annotated[bool, typer.Option("--json", help="as json")] = False,
    brief: Annotated[bool, typer.Option("--brief", help="the verdict alone, in a line")] = False,
) -> None:
    """Say in Markdown what the working tree does to the results of REV: the verdict first, then what counts and why.

    A difference counts where its 95% interval leaves out 0: that of the models' answers to the same examples, the same
    seeds paired, where DVC has the predictions of both; else that by the spread over seeds. One seed tells nothing of
    others, so its difference has to be more than review.tolerance of params.yaml too; without predictions and seeds
    that alone decides. Figures, flags, settings, time and memory are read as DVC has them, so commit or run dvc repro
    first.

    Exit code 1 where a figure that models are judged by got worse beyond the noise and by more than the tolerance.
    """
    require_checkout("params.yaml")
    name, what = (base, "") if base else default_base()
    commit = commit_of(name)
    shown = f"{commit[:10]}, {what}" if what else f"{name} ({commit[:10]})"
    found = compare(Revision(commit), Revision())
    if brief:
        print(f"compared with {shown}: {verdict(found)}")
    else:
        print(json.dumps(as_json(found, shown), indent=2) if as_values else as_markdown(found, shown))
    if found.has_failed:
        raise typer.Exit(1)
