"""The facts under the verdict: how large, on how much, how long, where, from which commit."""

from collections.abc import Mapping
from typing import Any

from retrace.core.records import RunRecord
from retrace.report.runs import commit_text, duration


def run_facts(params: Mapping[str, Any], runs: Mapping[str, RunRecord], parameters: int) -> dict[str, str]:
    """Facts by name."""
    pretraining, model = runs.get("pretrain"), params["model"]
    first = pretraining or next(iter(runs.values()), None)
    facts = {"Parameters": _count(parameters)}
    if not model.get("checkpoint"):
        facts = {"Model": f"{params['family']}, {model['layers']} layers of {model['hidden_size']}", **facts}
    if pretraining and pretraining.tokens:
        facts["Tokens seen"] = _count(pretraining.tokens)
    facts["Seeds"] = str(len(params["finetune"]["seeds"]))
    if first:
        facts["Training"] = duration(sum(run.seconds for run in runs.values()))
        facts["Precision"] = f"{first.precision}, {first.processes} process{'es' if first.processes > 1 else ''}"
    if first and first.origin:
        facts |= {"Machine": first.origin.machine, "Commit": commit_text(first.origin), "Date": first.origin.date}
    return facts


def _count(number: int) -> str:
    return next(
        (f"{number / size:.2f} {unit}" for size, unit in ((1e9, "B"), (1e6, "M")) if number >= size), f"{number:,}"
    )
