"""A frozen body's features, computed once, against a body that computes in every epoch and evaluation."""

import time
import weakref
from pathlib import Path
from typing import Any, cast

import numpy as np
import pytest
import torch
from torch import Tensor, nn
from transformers import PreTrainedModel

from retrace.compute.sharding import recompute_layers
from retrace.finetuning import features
from retrace.finetuning import task as tasks
from retrace.finetuning.features import Lookup, computed_once
from retrace.finetuning.method import read_method
from retrace.finetuning.run import TaskObjective, Tuned, fine_tune
from retrace.finetuning.settings import FineTuneSettings
from retrace.finetuning.task import Task, outputs
from retrace.models.heads import make_model, set_dropout
from retrace.tasks.classification import Classification
from retrace.tasks.question_answering.extractive import ExtractiveTask
from retrace.tasks.question_answering.generative import GenerativeTask
from retrace.training.settings import OptimizerSettings
from retrace.training.throughput import ProductOperations
from tests.sharded import TOKENIZER
from tests.tiny import FAMILIES, MODEL, one_of, tiny_answers, tiny_config, tiny_device, tiny_questions, tiny_sentences

CONTEXT = "The guild of weavers was founded by Ada Lund in the year 1601."
ASKED = {"who founded the guild?": "Ada Lund", "when?": "1601", "what was founded by Ada Lund in the year?": ""}
SETTINGS = FineTuneSettings(
    lr=0.01, epochs=2, batch_size=4, max_length=32, max_train_examples=9, optimizer=OptimizerSettings(kind="adamw")
)
EXAMPLES = {"sst2": (9, 12), "squad": (3, 3)}  # trained on and held out


def _task(name: str, folder: Path, **reading: Any) -> Task[Any]:
    if name == "sst2":
        rows = [f"the {noun}{' was' * tall} {word}\t{label}" for noun, tall in (("ale", 1), ("hall of the river", 4))
                for word, label in (("stale", 0), ("full", 1), ("charming songs", 1)) for _ in range(2)]  # fmt: skip
        return Classification(tiny_sentences(folder, rows), TOKENIZER, 32)
    kind = GenerativeTask if reading.pop("generates", False) else ExtractiveTask
    return kind(tiny_questions(folder, CONTEXT, ASKED), TOKENIZER, tiny_answers(60, **reading))


def _model(task: Task[Any], family: str, method: str = "frozen") -> nn.Module:
    started = make_model(task.head, tiny_config(family, TOKENIZER), 0, "eager", task.classes)
    read_method({}, method).tune(started, task.head)
    return task.wrap(started)


def _body(model: nn.Module) -> nn.Module:
    return cast(nn.Module, cast(PreTrainedModel, getattr(model, "body", model)).base_model)


def _calls(body: nn.Module) -> list[int]:
    """The number of examples in each call from now on."""
    seen: list[int] = []
    body.register_forward_hook(lambda *call: seen.append(len(call[2].last_hidden_state)))
    return seen


def _tuned(task: Task[Any], model: nn.Module) -> Tuned:
    torch.manual_seed(1)
    return fine_tune(task, model, SETTINGS, 1, tiny_device(), "t")


def _forward_flops(task: Task[Any], model: nn.Module) -> int:
    """Operations of one forward pass over the training examples."""
    with torch.no_grad(), ProductOperations() as operations:
        chosen = TaskObjective(task, SETTINGS, 1).examples
        outputs(task, chosen, 8, tiny_device(), lambda batch: (task.scores(model.eval(), batch), None))
    return operations.total


def _numbers(tuned: Tuned) -> list[float]:
    epochs = tuned.epochs["dev"]
    rows = [value for epoch in epochs for row in epoch["rows"] for value in row.values() if isinstance(value, float)]
    return [*rows, *(epoch["loss"]["validation_loss"] for epoch in epochs), *(loss for _, loss in tuned.speed.points)]


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("name", EXAMPLES)
def test_precomputed_features_give_the_same_results(tmp_path: Path, monkeypatch, name: str, family: str) -> None:
    task = _task(name, tmp_path)
    once, anew = _model(task, family), _model(task, family)
    body, calls = _body(once), _calls(_body(once))
    body.register_forward_pre_hook(lambda *_: time.sleep(0.2))
    found = _tuned(task, once)
    train, held_out = EXAMPLES[name]
    assert len(calls) == -(-train // 8) + -(-held_out // 8)  # batches: two of training make one
    assert sum(calls) == train + held_out
    assert found.speed.seconds > 0.2 * len(calls) * train / (train + held_out)  # those of training
    head = found.speed.flops - _forward_flops(task, once)
    assert 0 < head < 0.5 * found.speed.flops
    assert _body(once) is body
    monkeypatch.setattr(features, "MOST", 0)
    calls = _calls(_body(anew))
    expected = _tuned(task, anew)
    assert sum(calls) > 2 * (train + held_out)
    np.testing.assert_allclose(_numbers(found), _numbers(expected), atol=2e-5)
    assert all(torch.allclose(once.state_dict()[key], weight, atol=2e-5) for key, weight in anew.state_dict().items())
    assert found.speed.tokens == expected.speed.tokens


def test_features_are_held_once_while_the_head_is_trained(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """They may take 4 GiB; the parts that they were put together from would take as much again."""
    made, compute = list[weakref.ref[Tensor]](), features._features

    def note(*given: Any) -> Tensor:
        found = compute(*given)
        made.append(weakref.ref(found))
        return found

    monkeypatch.setattr(features, "_features", note)
    task = _task("sst2", tmp_path)
    parts = {part: task.examples(part) for part in ("train", "dev")}
    with computed_once(task, _model(task, "bert"), parts, 12, tiny_device()):
        assert [part() for part in made] == [None, None]


def test_what_a_method_adds_beside_a_frozen_body_is_trained(tmp_path: Path) -> None:
    """Such as a vector that is added to all embeddings, which has no gradient where features are computed once."""
    task = _task("sst2", tmp_path)
    model = cast(Any, _model(task, "modernbert"))
    model.prompt = nn.Parameter(torch.zeros(model.config.hidden_size))
    model.get_input_embeddings().register_forward_hook(lambda *call: call[2] + model.prompt)
    _tuned(task, model)
    assert model.prompt.any()


@pytest.mark.parametrize("most", [0, features.MOST])
def test_a_frozen_body_has_no_dropout(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, most: int) -> None:
    """Its outputs in training are those of evaluation, and the head's dropout is left."""
    monkeypatch.setattr(features, "MOST", most)
    task = _task("sst2", tmp_path)
    model = cast(Any, _model(task, "bert"))
    set_dropout(model, 0.5)
    batch = task.collate(task.examples("dev"))
    with computed_once(task, model, {"dev": task.examples("dev")}, 12, tiny_device()) as prepared:
        given = task.collate(prepared.parts["dev"])
        mask = batch["mask"][:, :1] if most else batch["mask"]
        hidden, same = (model.train().bert(given["ids"], attention_mask=mask) for _ in range(2))
        assert torch.equal(hidden.pooler_output, same.pooler_output)
        scores, others = (task.scores(model.train(), given) for _ in range(2))
    assert not torch.equal(scores, others)
    exact = model.eval().bert(batch["ids"], attention_mask=batch["mask"])
    torch.testing.assert_close(hidden.pooler_output, exact.pooler_output)


def test_layers_of_a_frozen_body_are_computed_again_without_dropout(tmp_path: Path) -> None:
    """Match embeddings are trained below the body, so its activations would be kept for their gradient."""
    task = _task("squad", tmp_path, question_match=True)
    model, examples = cast(Any, _model(task, "bert")), task.examples("dev")
    set_dropout(model.body, 0.5)
    recompute_layers(model)
    batch, calls = task.collate(examples), list[int]()
    with computed_once(task, model, {"dev": examples}, 12, tiny_device()):
        expected = task.scores(model.eval(), batch)
        for layer in model.body.bert.encoder.layer:
            layer.attention.register_forward_pre_hook(lambda *_: calls.append(1))
        scores = task.scores(model.train(), batch)
        task.loss(scores, batch).backward()
    assert torch.equal(scores, expected)
    assert len(calls) == 2 * MODEL.layers
    assert model.match.weight.grad.any()


@pytest.mark.parametrize(
    ("name", "family", "method", "reading"),
    [
        ("sst2", "modernbert", "lora", {}),
        ("squad", "modernbert", "adapter", {}),
        ("squad", "bert", "frozen", {"question_match": True}),  # embeddings before the body are trained
        ("squad", "llama", "frozen", {"generates": True, "max_answer_length": 4}),
    ],
)
def test_trained_bodies_and_generation_have_no_features(
    tmp_path: Path, name: str, family: str, method: str, reading: dict[str, Any]
) -> None:
    task = _task(name, tmp_path, **reading)
    model, parts = _model(task, family, method), {"dev": task.examples("dev")}
    body = _body(model)
    with computed_once(task, model, parts, 8, tiny_device()) as prepared:
        assert prepared.parts is parts
        assert _body(model) is body


def test_padding_may_have_any_id() -> None:
    table = torch.arange(6.0).view(3, 2)
    output = Lookup(table, None)(torch.tensor([[2, 0, 128_004]]))
    assert output.last_hidden_state.tolist() == [[[4, 5], [0, 1], [4, 5]]]


def test_processes_compute_a_share_of_the_features_and_hold_all(tmp_path: Path, monkeypatch) -> None:
    """In the batches of one process."""
    task = _task("sst2", tmp_path)
    examples, sent = task.examples("dev"), cast(list[list[Any]], [])

    def compute(batch: dict[str, torch.Tensor]) -> tuple[torch.Tensor, int]:
        return batch["ids"].float(), len(batch["ids"])

    alone, sizes = outputs(task, examples, 5, tiny_device(), compute)
    monkeypatch.setattr(tasks, "gather_object", lambda mine: sent.append(mine) or mine)
    for rank in range(2):
        outputs(task, examples, 5, one_of(2, rank), compute)
    assert sorted(sent[1] + sent[3]) == sorted(sizes)
    found = sorted(sent[0] + sent[2], key=lambda item: item[0])
    assert all(np.array_equal(row, expected) for (_, row), expected in zip(found, alone, strict=True))
