"""What a model needs, before it is run: `retrace parameters`, `memory`, `plan` and `needs`.

Modules that import torch are imported where they are used: that takes seconds, and --help does not need them.
"""

import math
from collections.abc import Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from retrace.cli.check import check_ready
from retrace.cli.main import print_table
from retrace.core.errors import InputError
from retrace.core.files import size
from retrace.core.settings import Precision, build, read_params
from retrace.finetuning.settings import FineTuneSettings
from retrace.pretraining.settings import PretrainParams, PretrainSettings
from retrace.report.names import duration
from retrace.tasks.question_answering.settings import AnswerSettings, check_generative

if TYPE_CHECKING:
    from retrace.estimates.architectures import ClosedForm, NamedModel, Parameter, PublishedCount
    from retrace.estimates.memory import Needs
    from retrace.finetuning.method import Method

SECTIONS: dict[str, tuple[str, type[Any]]] = {
    "classification": ("sst2", FineTuneSettings),
    "qa": ("squad", AnswerSettings),
    "lm": ("pretrain", PretrainSettings),
}
STARTING = 0.001  # seconds; the hundreds of kernels of a step take a host at least as long to start

Model = Annotated[
    str | None, typer.Argument(metavar="MODEL", help="an architecture or a folder; default: params.yaml's")
]
Tuned = Annotated[str, typer.Option("--method", help="fine-tuning method, which decides what is trained")]
Head = Literal["classification", "qa", "lm"]
Lines = list[tuple[str, str]]  # names and values


def parameters(
    model: Model = None,
    head: Annotated[Head | None, typer.Option(help="the head; the method as for sst2 or squad")] = None,
    method: Tuned = "full",
    by: Annotated[Literal["parameter", "module", "layer"], typer.Option(help="one row for each")] = "parameter",
) -> None:
    """Print every parameter of a model, and the total next to the count by the architecture's formula.

    MODEL is an architecture (bert-base, or another of retrace/estimates/architectures.json), a folder with config.json,
    or, by default, the model of params.yaml that the method starts from. Without --head, the model is the pretrained
    body: BERT's with its pooler, RoBERTa's without one.
    """
    from retrace.estimates.architectures import HEADS, closed_form, count_parameters, rows

    params = read_params()
    chosen = _method(method, params, head)
    named = _named(model, params, chosen.settings.checkpoint)
    _, counts = count_parameters(HEADS.get(head or ""), named.config, chosen.tune)
    published = named.published if head is None and method == "full" else ()  # these are counts of the pretrained body
    table = [(name, f"{size:,}", f"{trained:,}") for name, size, trained in rows(counts, by)]
    print_table((by.capitalize(), "Size", "Trained"), table)
    print()
    print_table((), _totals(counts, closed_form(named.config, counts), published))


def _named(model: str | None, params: Mapping[str, Any], checkpoint: str | None = None) -> "NamedModel":
    """The model of that name; for None, the `checkpoint` of that name, or the model that params.yaml describes."""
    from retrace.estimates.architectures import NamedModel, find_model
    from retrace.estimates.needs import base_of

    if model is not None:
        return find_model(model)
    config, _ = base_of(params, checkpoint)
    if config is None:
        key, stage = "params.yaml: model.checkpoint", "model"
        if checkpoint is not None:
            key, stage = f"data/params.yaml: checkpoints.{checkpoint}", f"checkpoints@{checkpoint}"
        unknown = f"its sizes are not known before it is fetched; run dvc repro data/dvc.yaml:{stage}"
        raise InputError(f"{key}: {unknown}")
    return NamedModel(checkpoint or "params.yaml", config)


def _method(method: str, params: Mapping[str, Any], head: str | None) -> "Method":
    """The method of that name, for the task with this head.

    Raises InputError if neither params.yaml nor retrace/methods has a method of that name.
    """
    from retrace.finetuning.method import method_names, read_method

    if method not in (allowed := method_names(params)):
        raise InputError(f"--method: {method!r} is not allowed; expected one of {', '.join(allowed)}")
    return read_method(params, method, SECTIONS[head][0] if head else None)


def _totals(counts: "Sequence[Parameter]", form: "ClosedForm | None", published: "Sequence[PublishedCount]") -> Lines:
    """The model's own counts, and how the formula's and the published counts differ from them."""
    from retrace.estimates.architectures import sums

    lines: Lines = [(name.capitalize().replace("_", " "), f"{count:,}") for name, count in sums(counts).items()]
    if form is not None:
        lines += [("", ""), ("By the formula of the architecture", f"{form.total:,}")]
        lines += [(f"{term.name} {term.formula}", f"{term.count:,}") for term in form.terms]
        lines += [(f"difference of the model: {part}", f"{more:+,}") for part, more in form.differences.items()]
    for entry in published:
        lines += [("", ""), (f"Published ({entry.source})", f"{entry.total:,}")]
        lines += [(part, f"{more:+,}") for part, more in entry.differences.items()]
    return lines


def memory(
    batch: Annotated[int, typer.Option(min=1, help="examples per update on the device")],
    length: Annotated[int, typer.Option(min=1, help="tokens per example")],
    model: Model = None,
    method: Tuned = "full",
    head: Annotated[Head, typer.Option(help="the head; settings of sst2, squad or pretrain")] = "classification",
) -> None:
    """Print the memory of one update on one device.

    MODEL is as for `retrace parameters`. The estimate runs the real model, loss and optimizer on tensors without
    values, with the precision, optimizer and attention that this machine and params.yaml would use. It covers tensors;
    the program and memory fragmentation come on top.
    """
    from retrace.compute.device import open_device
    from retrace.estimates.memory import update_needs
    from retrace.estimates.needs import head_and_load
    from retrace.models.heads import check_length

    params = read_params()
    chosen = _method(method, params, head)
    named = _named(model, params, chosen.settings.checkpoint)
    check_length("--length", length, named.config)
    section, settings = SECTIONS[head]
    recipe = build(settings, params, section)
    if isinstance(recipe, AnswerSettings) and recipe.answers == "generative":
        check_generative(named.config.model_type, section)
    optimizer = recipe.optimizer.model_copy(update={"kind": chosen.settings.optimizer or recipe.optimizer.kind})
    device = open_device(0, build(Precision, params, "precision"), lease=False)
    kind, load = head_and_load(recipe, named.config, batch, length, device.bf16, device.attention)
    tune = partial(chosen.tune, dropout=getattr(recipe, "dropout", None))
    needed = update_needs(kind, named.config, load, optimizer, tune)
    print(f"{named.name}, {head}, {method}: {needed.parameters:,} parameters, {needed.trained:,} trained")
    precision = "bf16" if load.bf16 else "float32"
    print(f"{load.batch} × {load.length} tokens, matrix products in {precision}, {optimizer.kind}, {load}")
    keeps_best = isinstance(recipe, FineTuneSettings) and recipe.checkpoint == "best"
    print_table((), [("", ""), *_memory_lines(needed, keeps_best)])


def _memory_lines(needed: "Needs", keeps_best: bool) -> Lines:
    """An update's memory by kind; activations usually peak before there are gradients."""
    lines = [
        ("weights", size(needed.weights)),
        ("gradients", size(needed.gradients)),
        ("optimizer state", size(needed.moments)),
        ("activations and temporary buffers, at most", size(needed.activations)),
        ("estimate (not all of this is there at once)", size(needed.peak)),
    ]
    if keeps_best:  # else the last epoch's, which are those above
        lines.append(("weights of the kept epoch, in main memory, from the second epoch on", size(needed.gradients)))
    return lines


def plan(
    tokens: Annotated[float, typer.Option(min=1, max=1e18, help="to train on, over all epochs, such as 3e9")],
    devices: Annotated[list[int] | None, typer.Argument(min=1, help="how many; default: 1 8 64")] = None,
    batch: Annotated[int | None, typer.Option(min=1, help="blocks per step, all devices; default: params.yaml")] = None,
    teraflops: Annotated[
        float | None, typer.Option(min=0.01, max=1e6, help="peak TFLOP/s of a device; default: an H200's")
    ] = None,
    utilization: Annotated[float, typer.Option(min=0.01, max=1, help="share of the peak that is reached")] = 0.4,
    sharded: Annotated[bool, typer.Option("--sharded", help="shard weights, gradients and moments (FSDP)")] = False,
) -> None:
    """Print the memory and time of pretraining with the settings in params.yaml, a line for each number of devices.

    Memory is the peak of tensors in an update with the attention kernels of GPUs. The program and memory fragmentation
    come on top, and validation, which reads 32 blocks at once, may take more if the vocabulary is large.
    RETRACE_MICRO_BATCH and RETRACE_ACTIVATION_CHECKPOINTING are taken into account. Disk is what the run writes: the
    model, DVC's copy of it, and, during the run, two checkpoints and one being written. Time follows from FLOPs, a
    device's peak and the share of it that is reached. That share is an assumption, and small models reach far less;
    reports/runs/pretrain.json has the share that a run on a known GPU reached.
    """
    from retrace.estimates.needs import STATES, TRAINED, pretraining_needs
    from retrace.models.heads import check_length
    from retrace.training.throughput import PEAKS

    devices = devices or [1, 8, 64]
    params = read_params()
    settings = PretrainParams.read(params)
    bf16 = settings.precision != "fp32"  # auto is bf16 on GPUs
    bf16_peak, fp32_peak = PEAKS["H200"]
    teraflops = teraflops or (bf16_peak if bf16 else fp32_peak) / 1e12
    recipe = settings.pretrain.model_copy(update={"batch_size": batch or settings.pretrain.batch_size})
    config = _named(None, params).config
    check_length("params.yaml: pretrain.block_size", recipe.block_size, config)
    # The blocks of a step on the device with the most, and whether it shares the weights.
    parts = {each: (math.ceil(recipe.batch_size / each), sharded and each > 1) for each in devices}
    needed = {part: pretraining_needs(config, recipe, part[0], bf16, "sdpa", part[1]) for part in {*parts.values()}}
    first = needed[parts[devices[0]]]
    steps = math.ceil(tokens / recipe.batch_size / recipe.block_size)
    model = f"{config.model_type}: {first.parameters:,} parameters, {first.flops / 1e9:.3f} GFLOP a token"
    print(f"{model}; blocks of {recipe.block_size} tokens, {recipe.batch_size} a step, {steps:,} steps")
    precision = "bf16" if bf16 else "fp32"
    print(f"assumed: a peak of {teraflops:g} TFLOP/s per device in {precision}, {utilization:.0%} MFU")
    print(f"disk: {TRAINED} × {size(first.weights)} of weights, {STATES} × {size(first.checkpoint)} of checkpoints")
    lines, shortest = [], math.inf
    for each in devices:
        busy = min(each, recipe.batch_size)  # a device without a block does not help
        idle = f" ({each - busy} idle)" if busy < each else ""
        need, (blocks, _) = needed[parts[each]], parts[each]
        share = blocks / recipe.batch_size  # the slowest device decides
        seconds = tokens * share * need.flops / (teraflops * 1e12 * utilization)
        shortest = min(shortest, seconds / steps)
        lines.append((f"{each}{idle}", blocks, size(need.memory(each)), duration(seconds)))
    print_table(("devices", "blocks each", "memory each", "time"), lines)
    if shortest < STARTING:
        print(f"note: a step of {1000 * shortest:.2g} ms is shorter than a host takes to start its kernels, so a step "
              "takes longer")  # fmt: skip


def needs() -> None:
    """Print the disk and memory that the runs of params.yaml need, and what is available, before any of them starts.

    Exits with an error if there is clearly too little; `retrace study run` checks this first. Memory is the peak of
    tensors in an update of any of the runs on one device, as `retrace memory` estimates it; program and data come on
    top. Disk is for models: fetched and trained ones, DVC's copies, and the saved states of the largest run. Data and
    predictions are small in comparison.
    """
    from retrace.estimates.needs import require_room

    for line in require_room(check_ready()):
        print(line)
