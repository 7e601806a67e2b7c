"""`retrace plan`: what pretraining with the settings in params.yaml takes, before any of it is run.

Memory is the most that tensors take at once; the program and the gaps that an allocator leaves come on top. The time
follows from operations, a device's peak and the share of it that is reached, which is an assumption:
`reports/runs/pretrain.json` says what was reached where a run was made.
"""

from typing import Annotated

import typer

from retrace.cli.terminal import above_0, print_table
from retrace.core.files import size
from retrace.core.settings import build, read_params
from retrace.estimates.architectures import config_of
from retrace.estimates.memory import pretraining_needs
from retrace.pretraining.settings import PretrainSettings


def main(
    tokens: Annotated[float, typer.Option(callback=above_0, help="to train on, all epochs together, such as 3e9")],
    devices: Annotated[list[int], typer.Option(callback=above_0, help="how many; one process on each")] = [1, 8, 64],  # noqa: B006
    batch: Annotated[
        int | None, typer.Option(callback=above_0, help="blocks a step over all devices, if not as in params.yaml")
    ] = None,
    teraflops: Annotated[float, typer.Option(callback=above_0, help="a device's peak; the H200's in bf16")] = 989.0,
    utilisation: Annotated[float, typer.Option(callback=above_0, help="share of the peak that is reached")] = 0.4,
    fp32: Annotated[bool, typer.Option("--fp32", help="products in float32 rather than bf16")] = False,
    sharded: Annotated[
        bool, typer.Option("--sharded", help="devices share weights, gradients and moments (FSDP)")
    ] = False,
) -> None:
    """Print a line for each number of devices."""
    params = read_params()
    recipe = build(PretrainSettings, params, "pretrain")
    recipe = recipe.model_copy(update={"batch_size": batch or recipe.batch_size})
    config = config_of(params)
    blocks = {each: -(-recipe.batch_size // each) for each in devices}  # of a step, on the device that gets most
    needs = {count: pretraining_needs(config, recipe, count, not fp32, "sdpa") for count in {*blocks.values()}}
    first = needs[blocks[devices[0]]]
    print(
        f"{config.model_type}: {first.parameters:,} parameters, "
        f"{first.flops / 1e9:.3f} GFLOP a token; "
        f"blocks of {recipe.block_size} tokens, {recipe.batch_size} a step, "
        f"{tokens / recipe.batch_size / recipe.block_size:,.0f} steps"
    )
    print(f"assumed: {teraflops:g} TFLOP/s a device, of which {utilisation:.0%} are reached")
    rows = []
    for each in devices:
        busy = min(each, recipe.batch_size)  # a device that gets no block does not help
        idle = f" ({each - busy} idle)" if busy < each else ""
        need = needs[blocks[each]]
        seconds = tokens * need.flops / (busy * teraflops * 1e12 * utilisation)
        rows.append((f"{each}{idle}", blocks[each], size(need.memory(each, sharded)), duration(seconds)))
    print_table(("devices", "blocks each", "memory each", "time"), rows)


def duration(seconds: float) -> str:
    """Seconds as people say them."""
    for unit, length in (("days", 86400), ("hours", 3600), ("minutes", 60)):
        if seconds >= 2 * length:
            return f"{seconds / length:.1f} {unit}"
    return f"{seconds:.0f} seconds"
