"""`retrace memory`: what an update of a model takes on one device, before it is made.

MODEL is as for `retrace parameters`. The estimate runs the real model, loss and optimiser on tensors without values, in
the precision, with the optimiser and the attention that this machine and params.yaml would use. It is of tensors; the
program and the gaps that an allocator leaves come on top. The published formulas stand beside it for comparison:
`retrace/estimates/published_memory.py` says what they leave out.
"""

import argparse
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from transformers import PreTrainedConfig

from retrace.compute.device import open_device
from retrace.core.errors import InputError
from retrace.core.registry import plugin_names
from retrace.core.settings import PARAMS, Precision, build, read_params
from retrace.core.table import print_table, size
from retrace.datasets.squad import read_json_file
from retrace.estimates.architectures import HEADS, find_model
from retrace.estimates.memory import Load, Needs, tuning_needs
from retrace.estimates.published_memory import formula_memory
from retrace.finetuning.method import TASK_OF, Method, read_method
from retrace.finetuning.settings import METHODS, FineTuneSettings
from retrace.models.heads import longest_input, objective_of
from retrace.tasks.question_answering.settings import SquadSettings
from retrace.training.settings import OptimizerSettings, PretrainSettings

HELP = "memory of an update, estimated, published and measured"
SECTIONS: dict[str, tuple[str, type[Any]]] = {
    "classification": ("sst2", FineTuneSettings),
    "qa": ("squad", SquadSettings),
    "lm": ("pretrain", PretrainSettings),
}
RUNS = Path("reports/runs")
MASK_RATE: float = PretrainSettings.model_fields["mask_rate"].default


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Which model, on how much at once."""
    parser.add_argument("model", nargs="?", metavar="MODEL", help="a preset or a folder; params.yaml's if absent")
    parser.add_argument("--batch", type=int, required=True, help="examples of an update on the device")
    parser.add_argument("--length", type=int, required=True, help="tokens of an example")
    parser.add_argument("--method", choices=plugin_names(METHODS), default="full", help="what is added and frozen")
    parser.add_argument("--head", choices=list(HEADS), default="classification", help="the task's head")


def run(arguments: argparse.Namespace) -> None:
    """Print the estimate, the published formula's figure and what runs of such a model held.

    Raises InputError where there is no such model, or batch or length are out of range.
    """
    named = find_model(arguments.model)
    _check(arguments, named.config)
    if named.config.pad_token_id is None:  # as in Llama's published config; a classifier then takes no batch
        named.config.pad_token_id = 0
    params = read_params() if PARAMS.is_file() else {}
    method = read_method(params, arguments.method, TASK_OF.get(arguments.head))
    optimiser, mask_rate = _recipe(params, arguments.head)
    optimiser = optimiser.model_copy(update={"kind": method.settings.optimizer or optimiser.kind})
    device = open_device(0, build(Precision, params, "precision") if params else "auto")
    share = mask_rate if objective_of(named.config) == "masked" else 1.0
    asked = arguments.batch * int(arguments.length * share)
    load = Load(arguments.batch, arguments.length, asked, device.bf16, device.attention)
    needs = tuning_needs(HEADS[arguments.head], named.config, method.tune, load, optimiser)
    what = f"{named.name}, {arguments.head}, {arguments.method}"
    print(f"{what}: {needs.parameters:,} parameters, {needs.trained:,} trained")
    precision = "bf16" if load.bf16 else "float32"
    print(f"{load.batch} × {load.length} tokens, products in {precision}, {optimiser.kind}, {load.attention} attention")
    print_table([*_estimate(needs), *_published(named.config, needs, arguments, method), *_measured(needs)])


def _check(arguments: argparse.Namespace, config: PreTrainedConfig) -> None:
    for name in ("batch", "length"):
        if getattr(arguments, name) <= 0:
            raise InputError(f"--{name}: expected a number above 0")
    longest = longest_input(config)
    if arguments.length > longest:
        raise InputError(f"--length: {arguments.length} is not allowed; the model reads at most {longest} tokens")


def _recipe(params: dict[str, Any], head: str) -> tuple[OptimizerSettings, float]:
    """The optimiser of the task, and which share of the tokens a masked language model is asked for."""
    if not params:
        return OptimizerSettings(), MASK_RATE
    name, settings = SECTIONS[head]
    recipe = build(settings, params, name)
    return recipe.optimizer, getattr(recipe, "mask_rate", MASK_RATE)


def _estimate(needs: Needs) -> list[tuple[str, str]]:
    return [
        ("", ""),
        ("weights", size(needs.weights)),
        ("gradients", size(needs.gradients)),
        ("moments of the optimiser", size(needs.moments)),
        ("activations and the like, at the peak", size(needs.passing)),
        ("estimate", size(needs.peak)),
        ("the kept epoch's weights, in main memory, from the second epoch on", size(needs.weights)),
    ]


def _published(
    config: PreTrainedConfig, needs: Needs, arguments: argparse.Namespace, method: Method
) -> list[tuple[str, str]]:
    """The study's formula for the method, where it has one."""
    found = formula_memory(method, config, needs)
    if found is None:
        return [("", ""), ("published", "no formula")]
    formula, memory = found
    return [("", ""), (f"published: {formula}", size(memory.at(arguments.batch, arguments.length)))]


def _measured(needs: Needs) -> Sequence[tuple[str, str]]:
    """What runs of a model with as many parameters held: whole processes, program and data included."""
    lines = [("", "")]
    for path in sorted(RUNS.rglob("*.json")):
        found = read_json_file(path)
        if (found.get("parameters"), found.get("trained_parameters")) == (needs.parameters, needs.trained):
            lines.append((f"measured, whole process: {path}", f"{found['peak_memory_mib']:,} MiB"))
            if found["gpu_memory_mib"] is not None:
                lines.append((f"measured, tensors on the GPU: {path}", f"{found['gpu_memory_mib']:,} MiB"))
    return lines if len(lines) > 1 else [*lines, ("measured", "no run of this model here")]
