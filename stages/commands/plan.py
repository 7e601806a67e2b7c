"""`retrace plan`: what pretraining with the settings in params.yaml takes, before any of it is run.

Memory is that of weights, gradients, optimiser and kept activations; the system, CUDA and what is only held
for a moment come on top. The time follows from operations, a device's peak and the share of it that is
reached, which is an assumption: `reports/runs/pretrain.json` says what was reached where a run was made.
"""

import argparse
from collections.abc import Sequence
from dataclasses import replace

from stages.corpus.tokenizer import TokenizerSettings
from stages.harness.errors import InputError
from stages.harness.settings import build, check_value, profile_key, read_params
from stages.nets.heads import make_config
from stages.nets.settings import ModelSettings
from stages.nets.vocabulary import Vocabulary
from stages.training.planning import Needs, measure_needs
from stages.training.settings import PretrainSettings

HELP = "memory and time of a pretraining run, before it is run"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """How much text, on what."""
    parser.add_argument("--tokens", type=float, required=True, help="to train on, all epochs together, such as 3e9")
    parser.add_argument("--devices", type=int, nargs="+", default=[1, 8, 64], help="how many; one process on each")
    parser.add_argument("--batch", type=int, help="blocks a step over all devices, if not as in params.yaml")
    parser.add_argument("--teraflops", type=float, default=989.0, help="a device's peak; the H200's in bf16")
    parser.add_argument("--utilisation", type=float, default=0.4, help="share of the peak that is reached")
    parser.add_argument("--fp32", action="store_true", help="products in float32 rather than bf16")


def run(arguments: argparse.Namespace) -> None:
    """Print a line for each number of devices."""
    params = read_params()
    model, tokenizer, key = (profile_key(params, name) for name in ("model", "tokenizer", "pretrain"))
    recipe = build(PretrainSettings, params, key)
    arguments.batch = recipe.batch_size if arguments.batch is None else arguments.batch
    for name in ("tokens", "devices", "batch", "teraflops", "utilisation"):
        value = getattr(arguments, name)
        if min(value if isinstance(value, list) else [value]) <= 0:
            raise InputError(f"--{name}: expected a number above 0")
    recipe = replace(recipe, batch_size=arguments.batch)
    family, tokens = check_value(params, "family", str), build(TokenizerSettings, params, tokenizer).vocab_size
    config = make_config(family, build(ModelSettings, params, model), Vocabulary(tokens, *range(5)))
    needs = measure_needs(config, recipe, not arguments.fp32, "sdpa")
    print(
        f"{family}, {key.split('.')[1]}: {needs.parameters:,} parameters, {needs.flops / 1e9:.3f} GFLOP a token; "
        f"blocks of {recipe.block} tokens, {recipe.batch_size} a step, "
        f"{arguments.tokens / recipe.batch_size / recipe.block:,.0f} steps"
    )
    print(f"assumed: {arguments.teraflops:g} TFLOP/s a device, of which {arguments.utilisation:.0%} are reached")
    print_table(
        [("devices", "blocks each", "memory each", "time")]
        + [row(needs, recipe, devices, arguments) for devices in arguments.devices]
    )


def row(needs: Needs, recipe: PretrainSettings, devices: int, arguments: argparse.Namespace) -> tuple[str, ...]:
    """What the run takes on so many devices; those that get no block do not help."""
    busy = min(devices, recipe.batch_size)
    blocks = -(-recipe.batch_size // busy)
    seconds = needs.seconds(arguments.tokens, busy, arguments.teraflops * 1e12 * arguments.utilisation)
    idle = f" ({devices - busy} idle)" if busy < devices else ""
    return f"{devices}{idle}", str(blocks), size(needs.memory(blocks, devices)), duration(seconds)


def size(count: int) -> str:
    """Bytes as people say them."""
    return f"{count / 2**30:.1f} GiB" if count >= 2**30 else f"{count / 2**20:.0f} MiB"


def duration(seconds: float) -> str:
    """Seconds as people say them."""
    for unit, length in (("days", 86400), ("hours", 3600), ("minutes", 60)):
        if seconds >= 2 * length:
            return f"{seconds / length:.1f} {unit}"
    return f"{seconds:.0f} seconds"


def print_table(rows: Sequence[Sequence[str]]) -> None:
    """Columns as wide as their widest cell."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    for cells in rows:
        print("  ".join(cell.rjust(width) for cell, width in zip(cells, widths, strict=True)))
