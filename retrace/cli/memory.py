"""`retrace memory`: what an update of a model takes on one device, before it is made.

MODEL is as for `retrace parameters`. The estimate runs the real model, loss and optimiser on tensors without values, in
the precision, with the optimiser and the attention that this machine and params.yaml would use. It is of tensors; the
program and the gaps that an allocator leaves come on top. The published formulas stand beside it for comparison:
`retrace/estimates/published_memory.py` says what they leave out.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any

import typer

from retrace.cli.parameters import Model, Tuned
from retrace.cli.terminal import above_0, one_of, print_table
from retrace.compute.device import open_device
from retrace.core.errors import InputError
from retrace.core.files import size
from retrace.core.settings import PARAMS, Precision, build, read_params
from retrace.datasets.squad import read_json_file
from retrace.estimates.architectures import HEADS, find_model
from retrace.estimates.memory import Load, Needs, update_needs
from retrace.estimates.published_memory import formula_memory
from retrace.finetuning.method import TASK_OF, read_method
from retrace.finetuning.settings import FineTuneSettings
from retrace.models.heads import longest_input, objective_of
from retrace.pretraining.settings import PretrainSettings
from retrace.tasks.question_answering.settings import AnswerSettings
from retrace.training.settings import OptimizerSettings

SECTIONS: dict[str, tuple[str, type[Any]]] = {
    "classification": ("sst2", FineTuneSettings),
    "qa": ("squad", AnswerSettings),
    "lm": ("pretrain", PretrainSettings),
}
RUNS = Path("reports/runs")
MASK_RATE: float = PretrainSettings.model_fields["mask_rate"].default


def main(
    batch: Annotated[int, typer.Option(callback=above_0, help="examples of an update on the device")],
    length: Annotated[int, typer.Option(callback=above_0, help="tokens of an example")],
    model: Model = None,
    method: Tuned = "full",
    head: Annotated[
        str, typer.Option(callback=one_of(HEADS), help=f"the task's head: {', '.join(HEADS)}")
    ] = "classification",
) -> None:
    """Print the estimate, the published formula's figure and what runs of such a model held.

    Raises InputError where there is no such model, or the length is more than it reads.
    """
    named = find_model(model)
    longest = longest_input(named.config)
    if length > longest:
        raise InputError(f"--length: {length} is not allowed; the model reads at most {longest} tokens")
    params = read_params() if PARAMS.is_file() else {}
    chosen = read_method(params, method, TASK_OF.get(head))
    optimiser, mask_rate = _recipe(params, head)
    optimiser = optimiser.model_copy(update={"kind": chosen.settings.optimizer or optimiser.kind})
    device = open_device(0, build(Precision, params, "precision") if params else "auto")
    share = mask_rate if objective_of(named.config) == "masked" else 1.0
    load = Load(batch, length, batch * int(length * share), device.bf16, device.attention)
    needs = update_needs(HEADS[head], named.config, load, optimiser, chosen.tune)
    print(f"{named.name}, {head}, {method}: {needs.parameters:,} parameters, {needs.trained:,} trained")
    precision = "bf16" if load.bf16 else "float32"
    print(f"{load.batch} × {load.length} tokens, products in {precision}, {optimiser.kind}, {load.attention} attention")
    found = formula_memory(chosen, named.config, needs)
    published = ("published", "no formula")
    if found is not None:
        published = (f"published: {found[0]}", size(found[1].at(batch, length)))
    measured = list(_measured(needs)) or [("measured", "no run of this model here")]
    print_table((), [("", ""), *_estimate(needs), ("", ""), published, ("", ""), *measured])


def _recipe(params: dict[str, Any], head: str) -> tuple[OptimizerSettings, float]:
    """The optimiser of the task, and which share of the tokens a masked language model is asked for."""
    if not params:
        return OptimizerSettings(), MASK_RATE
    name, settings = SECTIONS[head]
    recipe = build(settings, params, name)
    return recipe.optimizer, getattr(recipe, "mask_rate", MASK_RATE)


def _estimate(needs: Needs) -> list[tuple[str, str]]:
    return [
        ("weights", size(needs.weights)),
        ("gradients", size(needs.gradients)),
        ("moments of the optimiser", size(needs.moments)),
        ("activations and the like, at the peak", size(needs.passing)),
        ("estimate", size(needs.peak)),
        ("the kept epoch's weights, in main memory, from the second epoch on", size(needs.weights)),
    ]


def _measured(needs: Needs) -> Iterator[tuple[str, str]]:
    """What runs of a model with as many parameters held: whole processes, program and data included."""
    for path in sorted(RUNS.rglob("*.json")):
        found = read_json_file(path)
        if (found.get("parameters"), found.get("trained_parameters")) == (needs.parameters, needs.trained):
            yield f"measured, whole process: {path}", f"{found['peak_memory_mib']:,} MiB"
            if found["gpu_memory_mib"] is not None:
                yield f"measured, tensors on the GPU: {path}", f"{found['gpu_memory_mib']:,} MiB"
