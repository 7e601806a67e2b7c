"""What is said of disk and memory before any run starts."""

import re
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import pytest
import torch

from retrace.compute.device import named_out_of_memory
from retrace.core.errors import InputError
from retrace.core.files import size, write_json
from retrace.core.settings import read_params
from retrace.estimates import architectures, needs
from retrace.estimates.architectures import find_model
from retrace.estimates.needs import base_of
from tests.commands import refused, retrace
from tests.tiny import tiny_answers
from tests.toy import TOY, copy_settings

GIB = 2**30
BERT = "google-bert/bert-base-uncased@" + "1" * 40  # reads 512 tokens
GRID = {"finetune.methods": ["full"], "finetune.squad_methods": [], "finetune.seeds": [1, 2]}
SMALL = GRID | {f"model.{key}": value for key, value in TOY["model"].items()}


@pytest.fixture
def machine(here: Path, monkeypatch: pytest.MonkeyPatch) -> SimpleNamespace:
    """A folder with settings, and how much there is of everything."""
    there = SimpleNamespace(disk=GIB, memory=GIB, project=copy_settings(here))
    there.project.set_all(SMALL)
    monkeypatch.setattr(needs.shutil, "disk_usage", lambda path: SimpleNamespace(free=there.disk))
    monkeypatch.setattr(
        needs.psutil, "virtual_memory", lambda: SimpleNamespace(available=there.memory // 2, total=there.memory)
    )
    monkeypatch.setattr(needs.torch.cuda, "is_available", lambda: False)
    monkeypatch.setattr(needs, "LIMIT", here / "memory.max")
    known = architectures._architectures()
    known["bert-base"]["config"]["num_hidden_layers"] = 2  # the other ten take seconds to trace, in every estimate
    monkeypatch.setattr(architectures, "_architectures", lambda: known)
    return there


def _planned(only: str | None = None) -> list[needs.Planned]:
    return list(needs._runs(params := read_params(), needs._bases(params), only=only))


def test_what_is_needed_stands_beside_what_there_is(machine) -> None:
    needed = r"needs: about [\d.]+ [MG]iB of"
    said = rf"{needed} disk for models and states; 1\.0 GiB is free\n"
    said += rf"{needed} memory for the tensors of .* on one device; 512 MiB of 1\.0 GiB is free in main memory\n"
    assert re.fullmatch(said, retrace("needs").out)


@pytest.mark.parametrize(("limit", "free"), [("max", "512 MiB of 1.0 GiB"), (str(GIB // 4), "256 MiB of 256 MiB")])
def test_no_more_memory_is_free_than_a_container_may_use(machine, limit: str, free: str) -> None:
    needs.LIMIT.write_text(f"{limit}\n")
    assert f" on one device; {free} is free in main memory\n" in retrace("needs").out


def test_nothing_is_estimated_for_settings_that_the_stages_refuse(machine) -> None:
    machine.project.set("metrics.nonsense", 1)
    assert refused("needs") == refused("check")


def test_a_frozen_body_is_in_float32_while_a_cpu_loads_it(machine, monkeypatch: pytest.MonkeyPatch) -> None:
    need = needs.Needs(
        parameters=1000, trained=1, weights=2000, flops=1.0, moments=8, passes=3000, besides=3000, layer=9, outside=9
    )
    frozen, trained = (needs.Planned("sst2 full 1", None, replace(need, passes=peak)) for peak in (3000, 5000))
    assert (frozen.peak, trained.peak) == (4 * 1000, 5000)
    monkeypatch.setattr(needs, "_runs", lambda params, bases: [frozen])
    machine.memory = 3500
    assert retrace("needs").code == 2
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    assert frozen.peak == 3000


def test_disk_is_of_the_runs_that_are_left(machine) -> None:
    machine.project.set("finetune.methods", ["full", "frozen"])
    runs = _planned()
    assert [run.name for run in runs] == ["pretrain", "sst2 full 1", "sst2 full 2", "sst2 frozen 1", "sst2 frozen 2"]
    pretrain, full, _, frozen, _ = runs
    assert frozen.saved < full.saved == full.needs.weights
    assert (pretrain.state, full.state) == (pretrain.needs.checkpoint, full.needs.checkpoint + full.saved)
    largest = max(run.state for run in runs)
    assert needs._disk(runs) == 2 * (pretrain.saved + 2 * full.saved + 2 * frozen.saved) + 3 * largest
    done = [replace(run, written=0 if run.name == "sst2 frozen 2" else run.saved) for run in runs]
    assert needs._disk(done) == 2 * frozen.saved + 3 * frozen.state
    Path("models/pretrained").mkdir(parents=True)
    for missing in (1, 0):  # of a smaller model, and of this one
        Path("models/pretrained/model.safetensors").write_bytes(bytes(pretrain.saved - missing))
        assert _planned(needs.PRETRAINING)[0].is_done == (not missing)
    assert "for models and states, besides 1 of 5 runs whose weights are here; 1.0 GiB is free" in retrace("needs").out


def test_a_run_that_keeps_its_last_epoch_saves_the_weights_of_no_other(machine) -> None:
    copies = "weights of the kept epoch, in main memory, from the second epoch on"
    for keep, more in (("best", 1), ("last", 0)):
        machine.project.set("sst2.checkpoint", keep)
        (run,) = _planned("sst2 full 1")
        assert run.state == run.needs.checkpoint + more * run.saved
        assert (copies in retrace("memory", "--batch", "2", "--length", "16").out) == bool(more)


def test_a_checkpoint_that_is_pretrained_on_is_fetched_first(machine) -> None:
    machine.project.set_all({"family": "bert", "model.checkpoint": BERT})
    (run,) = _planned(needs.PRETRAINING)
    before = needs._disk([run])
    Path("data/model").mkdir()
    find_model("bert-base").config.save_pretrained("data/model")
    for origin, written in (("org/other@" + "1" * 40, 0), (BERT, 3)):  # the hub's cache, data/model, DVC's cache
        write_json(Path("data/model/source.json"), {"from": origin})
        assert before - needs._disk(_planned(needs.PRETRAINING)) == written * 4 * run.needs.parameters


def test_a_further_checkpoint_is_fetched_again_if_its_folder_holds_another(machine) -> None:
    checkpoints = {"bert": {"family": "bert", "checkpoint": BERT}}
    machine.project.set_all({"checkpoints": checkpoints, "methods.full": {"checkpoint": "bert"}})
    folder = Path("data/checkpoints/bert")
    find_model("bert-base").config.save_pretrained(folder)
    fetched = []
    for origin in ("org/other@" + "1" * 40, BERT):
        write_json(folder / "source.json", {"from": origin})
        (run,) = _planned("sst2 full 1")
        fetched.append(run.fetched)
    assert fetched == [folder, None]


def test_weights_that_are_passed_on_need_no_update_and_save_no_state(machine) -> None:
    given = {"family": "bert", "model.checkpoint": BERT, "pretrain.epochs": 0}
    machine.project.set_all({**given, "finetune.methods": ["frozen"]})
    (run,) = _planned(needs.PRETRAINING)
    weights = 4 * run.needs.parameters
    assert (run.peak, run.saved, run.state) == (weights, weights, 0)
    assert needs._disk([run]) == (3 + 2) * weights  # fetched and passed on, with the copies of each
    machine.disk = 10 * GIB
    assert retrace("needs").code == 0, "1 GiB holds the weights, but no update of all of them"


def test_a_task_has_its_own_dropout_and_answers_are_as_long_as_by_default(machine) -> None:
    machine.project.set_all({"finetune.squad_methods": ["full"], "sst2.optimizer.kind": "adamw"})
    (plain,) = _planned("sst2 full 1")
    machine.project.set("sst2.dropout", 0.3)
    (dropped,) = _planned("sst2 full 1")
    assert dropped.needs.peak > plain.needs.peak, "masks are kept for the backward pass"
    machine.project.set("sst2.rdrop", 1.0)
    (twice,) = _planned("sst2 full 1")
    assert twice.needs.activations == pytest.approx(2 * dropped.needs.activations, rel=0.05)
    assert twice.needs.flops == pytest.approx(2 * dropped.needs.flops, rel=0.05)
    machine.project.set("sst2.rdrop", 0.0)
    squad = dict(read_params()["squad"], answers="generative", question_match=False)
    del squad["max_answer_length"]
    machine.project.set_all({"family": "llama", "squad": squad, "sst2.dropout": None})
    assert _planned("squad full 1")[0].needs.peak > 0


def test_a_generated_answer_has_a_loss_for_its_words_and_its_end() -> None:
    """As many as the task's examples have at most."""
    settings = tiny_answers(64, answers="generative", max_answer_length=8)
    head, load = needs.head_and_load(settings, find_model("llama-3.2-1b").config, 2, 64, False, "eager")
    assert (head, load.scored) == ("language_model", 2 * (8 + 1))


def test_match_embeddings_take_the_gradient_through_a_frozen_body(machine) -> None:
    machine.project.set_all({"finetune.squad_methods": ["frozen"], "squad.question_match": False})
    (without,) = _planned("squad frozen 1")
    machine.project.set("squad.question_match", True)
    (within,) = _planned("squad frozen 1")
    assert within.needs.flops > 1.5 * without.needs.flops, "a backward pass"
    assert within.needs.activations > without.needs.activations, "which needs what the layers computed"


def test_training_is_planned_for_the_windows_that_it_reads(machine) -> None:
    machine.project.set("finetune.squad_methods", ["full"])
    machine.project.set_all({"squad.max_length": 64, "squad.doc_stride": 16, "squad.train_length": 32})
    (short,) = _planned("squad full 1")
    machine.project.set_all({"squad.max_length": 32, "squad.train_length": None})
    (as_short,) = _planned("squad full 1")
    assert short.peak == as_short.peak


def test_each_process_is_planned_for_the_largest_share_of_a_batch(machine, monkeypatch) -> None:
    """One of two processes takes three of five examples, as many as of six."""
    monkeypatch.setenv("WORLD_SIZE", "2")

    def memory(batch: int) -> int:
        machine.project.set("sst2.batch_size", batch)
        return needs.planned_memory(read_params(), "sst2 full 1") or 0

    assert 0 < memory(4) < memory(5) == memory(6)


def test_out_of_memory_names_what_takes_less_and_what_was_planned(machine, monkeypatch) -> None:
    monkeypatch.setenv("RETRACE_MICRO_BATCH", "2")
    params, runs = read_params(), {run.name: run.needs for run in _planned()}
    assert needs.planned_memory(params, "pretrain") == runs["pretrain"].peak
    assert needs.planned_memory(params, "sst2 full 2") == runs["sst2 full 2"].peak
    assert needs.planned_memory(params, "sst2 full 3") is None
    monkeypatch.setenv("WORLD_SIZE", "2")
    shared = size(needs.planned_memory(params, "pretrain") or 0)
    said = rf"^pretrain: CUDA out of memory\. Tried to allocate 2\.00 GiB; planned: {re.escape(shared)}, .* "
    said += r"RETRACE_MICRO_BATCH=N \(now 2\), N examples per forward pass, .*_CHECKPOINTING=true$"
    with pytest.raises(InputError, match=said), named_out_of_memory("pretrain"):
        raise torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 2.00 GiB")
    for sign, message in {
        "CUDA error: out of memory": "CUDA error: out of memory\nCompile with `TORCH_USE_CUDA_DSA` to enable",
        "Cuda failure 2 'out of memory'": "NCCL Error 1: unhandled cuda error\nCuda failure 2 'out of memory'",
        "CUBLAS_STATUS_ALLOC_FAILED": "CUDA error: CUBLAS_STATUS_ALLOC_FAILED when calling `cublasCreate(handle)`",
    }.items():
        with pytest.raises(InputError, match=f"^pretrain: {sign}; planned: "), named_out_of_memory("pretrain"):
            raise RuntimeError(message)
    with pytest.raises(RuntimeError, match="device-side assert"), named_out_of_memory("pretrain"):
        raise RuntimeError("CUDA error: device-side assert triggered")
    scoring = named_out_of_memory("perplexity-eval", trains=False)
    with pytest.raises(InputError, match=r"^perplexity-eval: out of memory$"), scoring:
        raise MemoryError


@pytest.mark.parametrize(("short", "message"), [("memory", "it needs about "), ("disk", ": the runs need about ")])
def test_too_little_is_one_line(machine, monkeypatch, short: str, message: str) -> None:
    setattr(machine, short, 1000)
    done = retrace("needs")
    assert (done.code, done.err.count("\n"), message in done.err) == (2, 1, True)
    monkeypatch.setenv("RETRACE_LAUNCH", "fsdp")  # several devices share the memory
    assert retrace("needs").code == (2 if short == "disk" else 0)


def test_pretraining_is_planned_where_every_method_starts_from_a_checkpoint_of_its_own(machine, monkeypatch) -> None:
    """The pipeline pretrains all the same; that of a study may not."""
    machine.project.set("checkpoints", {"bert": {"family": "bert", "checkpoint": BERT}})
    machine.project.set("methods.full", {"checkpoint": "bert"})
    tuned = ["sst2 full 1", "sst2 full 2"]
    assert [run.name for run in _planned()] == ["pretrain", *tuned]
    monkeypatch.setattr(needs, "PROJECT", machine.project.folder)
    Path("dvc.yaml").write_text("stages: {}\n")
    assert [run.name for run in _planned()] == tuned


def test_a_model_of_unknown_size_is_named(machine) -> None:
    unknown = f"org/other@{'a' * 40}"
    models = {"other": {"family": "bert", "checkpoint": unknown}}
    machine.project.set_all({"checkpoints": models, "model.checkpoint": unknown, "methods.full.checkpoint": "other"})
    said = "needs: the sizes of other, model are not known before they are fetched, and left out\n"
    assert retrace("needs").out == said


LONGER = [
    (("pretrain", "pretrain.block_size"), {"family": "bert", "model.checkpoint": BERT}),
    (("sst2 full 1", "sst2.max_length"), {"methods.full": {"checkpoint": "bert"}}),
    (
        ("squad full 1", "squad.train_length"),
        {"methods.full": {"checkpoint": "bert"}, "finetune.squad_methods": ["full"]},
    ),
]


@pytest.mark.parametrize(("asked", "changes"), LONGER)
def test_longer_inputs_than_a_checkpoint_reads_are_one_line(machine, asked: tuple[str, str], changes: dict) -> None:
    run, key = asked
    machine.project.set_all({"checkpoints": {"bert": {"family": "bert", "checkpoint": BERT}}, **changes, key: 513})
    said = f"params.yaml: {key}: 513 is not allowed; the model reads at most 512 tokens"
    with pytest.raises(InputError, match=f"^{re.escape(said)}$"):
        _planned(run)
    if run == "pretrain":
        assert refused("plan", "--tokens", "1e9") == f"error: {said}\n"


def test_the_folder_of_another_checkpoint_is_not_this_ones(here: Path) -> None:
    """As before `dvc repro` fetches the one that params.yaml names now."""
    copy_settings(here).set_all({"family": "bert", "model.checkpoint": BERT})
    sizes = find_model("bert-base").config
    sizes.num_hidden_layers = 3
    sizes.save_pretrained("data/model")
    layers = []
    for origin in ("org/other@" + "1" * 40, BERT):
        write_json(Path("data/model/source.json"), {"from": origin})
        layers.append(getattr(base_of(read_params())[0], "num_hidden_layers", None))
    assert layers == [12, 3]


def test_a_disk_that_has_half_of_what_is_estimated_may_do(machine) -> None:
    needed = needs._disk(_planned())
    for free, code in ((needed // 2 + 1, 0), (needed // 2 - 1, 2)):
        machine.disk = free
        assert retrace("needs").code == code
