"""`retrace parameters`: every parameter of a model, and their number beside what the architecture's formula says.

MODEL is a preset (bert-base, or another file of retrace/estimates/architectures), a folder with config.json, or, if
absent, the model of params.yaml. Without --head it is the body as it was pretrained: BERT's with its pooler, RoBERTa's
without one.
"""

import json
from collections.abc import Sequence
from dataclasses import asdict
from typing import Annotated, Literal

import typer
from torchinfo import summary

from retrace.cli.terminal import one_of, print_table
from retrace.core.registry import plugin_names
from retrace.core.settings import PARAMS, read_params
from retrace.estimates.architectures import HEADS, Published, find_model
from retrace.estimates.parameters import ClosedForm, Count, Grouping, closed_form, count_parameters, rows, sums
from retrace.finetuning.method import TASK_OF, read_method
from retrace.finetuning.settings import METHODS

Model = Annotated[str | None, typer.Argument(metavar="MODEL", help="a preset or a folder; params.yaml's if absent")]
Tuned = Annotated[
    str, typer.Option("--method", callback=one_of(plugin_names(METHODS)), help="what is added and frozen")
]


def main(
    model: Model = None,
    head: Annotated[
        str | None, typer.Option(callback=one_of(HEADS), help=f"the task's head: {', '.join(HEADS)}")
    ] = None,
    method: Tuned = "full",
    by: Annotated[Grouping, typer.Option(help="a row for each")] = "parameter",
    format: Annotated[Literal["table", "json"], typer.Option()] = "table",
    depth: Annotated[
        int | None, typer.Option("--summary", help="torchinfo's summary instead, so many levels deep")
    ] = None,
) -> None:
    """Print the rows, the totals and the formula.

    Raises InputError where there is no such model.
    """
    named = find_model(model)
    params = read_params() if PARAMS.is_file() else {}
    tune = read_method(params, method, TASK_OF.get(head or "")).tune
    network, counts = count_parameters(HEADS.get(head or ""), named.config, tune)
    if depth is not None:
        print(summary(network, depth=depth, verbose=0))
        return
    form = closed_form(named.config, counts)
    # What was published is of the pretrained body.
    published = named.published if head is None and method == "full" else ()
    if format == "json":
        terms = form and {term.name: {"formula": term.formula, "count": term.count} for term in form.terms}
        found = {
            "model": named.name,
            **sums(counts),
            "closed_form": form and {"total": form.total, "terms": terms, "differences": form.differences},
            "published": [asdict(entry) for entry in published],
            "rows": [{"name": name, "size": size, "trained": trained} for name, size, trained in rows(counts, by)],
        }
        print(json.dumps(found, indent=2, ensure_ascii=False))
        return
    grouped = [(name, f"{size:,}", f"{trained:,}") for name, size, trained in rows(counts, by)]
    print_table((by.capitalize(), "Size", "Trained"), grouped)
    print()
    print_table((), _totals(counts, form, published))


def _totals(counts: Sequence[Count], form: ClosedForm | None, published: Sequence[Published]) -> list[tuple[str, str]]:
    """What the model has, and how each other count comes to that."""
    lines = [(name.capitalize().replace("_", " "), f"{count:,}") for name, count in sums(counts).items()]
    if form is not None:
        lines += [("", ""), ("By the formula of the architecture", f"{form.total:,}")]
        lines += [(f"{term.name} {term.formula}", f"{term.count:,}") for term in form.terms]
        lines += [(f"difference of the model: {part}", f"{more:+,}") for part, more in form.differences.items()]
    for entry in published:
        lines += [("", ""), (f"Published ({entry.source})", f"{entry.total:,}")]
        lines += [(part, f"{more:+,}") for part, more in entry.differences.items()]
    return lines
