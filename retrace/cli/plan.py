"""`retrace plan`: what pretraining with the settings in params.yaml takes, before any of it is run.

Memory is the most that tensors take at once; the program and the gaps that an allocator leaves come on top. The time
follows from operations, a device's peak and the share of it that is reached, which is an assumption:
`reports/runs/pretrain.json` says what was reached where a run was made.
"""

import argparse

from retrace.core.errors import InputError
from retrace.core.settings import build, read_params
from retrace.core.table import print_table, size
from retrace.estimates.architectures import config_of
from retrace.estimates.memory import Needs, pretraining_needs
from retrace.training.settings import PretrainSettings

HELP = "memory and time of a pretraining run, before it is run"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """How much text, on what."""
    parser.add_argument("--tokens", type=float, required=True, help="to train on, all epochs together, such as 3e9")
    parser.add_argument("--devices", type=int, nargs="+", default=[1, 8, 64], help="how many; one process on each")
    parser.add_argument("--batch", type=int, help="blocks a step over all devices, if not as in params.yaml")
    parser.add_argument("--teraflops", type=float, default=989.0, help="a device's peak; the H200's in bf16")
    parser.add_argument("--utilisation", type=float, default=0.4, help="share of the peak that is reached")
    parser.add_argument("--fp32", action="store_true", help="products in float32 rather than bf16")
    parser.add_argument("--sharded", action="store_true", help="devices share weights, gradients and moments (FSDP)")


def run(arguments: argparse.Namespace) -> None:
    """Print a line for each number of devices."""
    params = read_params()
    recipe = build(PretrainSettings, params, "pretrain")
    arguments.batch = recipe.batch_size if arguments.batch is None else arguments.batch
    for name in ("tokens", "devices", "batch", "teraflops", "utilisation"):
        value = getattr(arguments, name)
        if min(value if isinstance(value, list) else [value]) <= 0:
            raise InputError(f"--{name}: expected a number above 0")
    recipe = recipe.model_copy(update={"batch_size": arguments.batch})
    config = config_of(params)
    rows = [(devices, _blocks(recipe, devices)) for devices in arguments.devices]
    found = {
        blocks: pretraining_needs(config, recipe, blocks, not arguments.fp32, "sdpa")
        for blocks in {blocks for _, blocks in rows}
    }
    needs = found[rows[0][1]]
    print(
        f"{config.model_type}: {needs.parameters:,} parameters, "
        f"{needs.flops / 1e9:.3f} GFLOP a token; "
        f"blocks of {recipe.block_size} tokens, {recipe.batch_size} a step, "
        f"{arguments.tokens / recipe.batch_size / recipe.block_size:,.0f} steps"
    )
    print(f"assumed: {arguments.teraflops:g} TFLOP/s a device, of which {arguments.utilisation:.0%} are reached")
    print_table(
        [("devices", "blocks each", "memory each", "time")]
        + [row(found[blocks], recipe, devices, arguments) for devices, blocks in rows]
    )


def row(needs: Needs, recipe: PretrainSettings, devices: int, arguments: argparse.Namespace) -> tuple[str, ...]:
    """What the run takes on so many devices; those that get no block do not help."""
    busy = min(devices, recipe.batch_size)
    seconds = needs.seconds(arguments.tokens, busy, arguments.teraflops * 1e12 * arguments.utilisation)
    idle = f" ({devices - busy} idle)" if busy < devices else ""
    return (
        f"{devices}{idle}",
        str(_blocks(recipe, devices)),
        size(needs.memory(devices, arguments.sharded)),
        duration(seconds),
    )


def _blocks(recipe: PretrainSettings, devices: int) -> int:
    """Blocks of a step on the device that gets most."""
    return -(-recipe.batch_size // devices)


def duration(seconds: float) -> str:
    """Seconds as people say them."""
    for unit, length in (("days", 86400), ("hours", 3600), ("minutes", 60)):
        if seconds >= 2 * length:
            return f"{seconds / length:.1f} {unit}"
    return f"{seconds:.0f} seconds"
