"""`retrace parameters`: every parameter of a model, and their number beside what the architecture's formula says.

MODEL is a preset (bert-base, or another file of retrace/estimates/architectures), a folder with config.json, or, if
absent, the model of params.yaml. Without --head it is the body as it was pretrained: BERT's with its pooler, RoBERTa's
without one.
"""

import argparse
import json
from collections.abc import Sequence
from dataclasses import asdict
from typing import Any, get_args

from torchinfo import summary

from retrace.core.registry import plugin_names
from retrace.core.settings import PARAMS, read_params
from retrace.core.table import print_table
from retrace.estimates.architectures import HEADS, Published, find_model
from retrace.estimates.closed_form import ClosedForm, closed_form
from retrace.estimates.parameters import Count, Grouping, count_parameters, rows, sums
from retrace.finetuning.method import TASK_OF, read_method
from retrace.finetuning.settings import METHODS
from retrace.models.heads import Head

HELP = "count the parameters of a model, by name"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Which model, and how to show it."""
    parser.add_argument("model", nargs="?", metavar="MODEL", help="a preset or a folder; params.yaml's if absent")
    parser.add_argument("--head", choices=list(HEADS), help="the task's head; the pretrained body alone if absent")
    parser.add_argument("--method", choices=plugin_names(METHODS), default="full", help="what is added and frozen")
    parser.add_argument("--by", choices=get_args(Grouping), default="parameter", help="a row for each")
    parser.add_argument("--format", choices=["table", "json"], default="table")
    parser.add_argument("--summary", type=int, metavar="DEPTH", help="torchinfo's summary instead, so many levels deep")


def run(arguments: argparse.Namespace) -> None:
    """Print the rows, the totals and the formula.

    Raises InputError where there is no such model.
    """
    named = find_model(arguments.model)
    head: Head | None = HEADS.get(arguments.head)
    params = read_params() if PARAMS.is_file() else {}
    method = read_method(params, arguments.method, TASK_OF.get(arguments.head))
    model, counts = count_parameters(head, named.config, method.tune)
    if arguments.summary is not None:
        print(summary(model, depth=arguments.summary, verbose=0))
        return
    form = closed_form(named.config, counts)
    # What was published is of the pretrained body.
    published = named.published if head is None and arguments.method == "full" else ()
    if arguments.format == "json":
        print(json.dumps(_as_json(named.name, counts, arguments.by, form, published), indent=2, ensure_ascii=False))
        return
    print_table(
        [(arguments.by.capitalize(), "Size", "Trained")]
        + [(row.name, f"{row.size:,}", f"{row.trained:,}") for row in rows(counts, arguments.by)]
    )
    print()
    print_table(_totals(counts, form, published))


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


def _as_json(
    name: str, counts: Sequence[Count], by: Grouping, form: ClosedForm | None, published: Sequence[Published]
) -> dict[str, Any]:
    return {
        "model": name,
        **sums(counts),
        "closed_form": form
        and {
            "total": form.total,
            "terms": {term.name: {"formula": term.formula, "count": term.count} for term in form.terms},
            "differences": form.differences,
        },
        "published": [asdict(entry) for entry in published],
        "rows": [asdict(row) for row in rows(counts, by)],
    }
