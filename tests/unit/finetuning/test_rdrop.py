"""R-Drop: the divergence and the loss worked by hand, and the two predictions of each example."""

from math import log
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from retrace.finetuning.features import computed_once
from retrace.finetuning.method import read_method
from retrace.finetuning.rdrop import divergence, rdrop_loss
from retrace.finetuning.run import TaskObjective
from retrace.finetuning.settings import FineTuneSettings
from retrace.models.heads import make_model, set_dropout
from retrace.tasks.classification import Classification
from retrace.tasks.question_answering.extractive import ExtractiveTask
from tests.tiny import tiny_answers, tiny_config, tiny_device, tiny_questions, tiny_sentences, tiny_tokenizer

TOKENIZER = tiny_tokenizer()
HALVES, QUARTERS = torch.tensor([0.5, 0.5]).log(), torch.tensor([0.25, 0.75]).log()
THERE, BACK = 0.5 * log(0.5 / 0.25) + 0.5 * log(0.5 / 0.75), 0.25 * log(0.25 / 0.5) + 0.75 * log(0.75 / 0.5)
ROWS = ["the ale was stale\t0", "the songs were charming and the hall was full .\t1"]


class Scripted(nn.Module):
    """Its scores are given: those of the first predictions, then those of the second."""

    def __init__(self, scores: Tensor) -> None:
        super().__init__()
        self._scores = scores

    def forward(self, input_ids: Tensor, **_: Any) -> SimpleNamespace:
        assert len(input_ids) == len(self._scores)
        return SimpleNamespace(logits=self._scores)


@pytest.fixture
def task(tmp_path: Path) -> Classification:
    return Classification(tiny_sentences(tmp_path, ROWS), TOKENIZER, 32)


def test_the_divergence_is_the_mean_of_both_directions_summed_over_the_examples() -> None:
    assert divergence(HALVES[None], QUARTERS[None]).item() == pytest.approx((THERE + BACK) / 2)
    first, second = torch.stack([HALVES + 7, QUARTERS]), torch.stack([QUARTERS, QUARTERS - 3])
    assert divergence(first, second).item() == pytest.approx((THERE + BACK) / 2), "the second example's is 0"
    spans = divergence(torch.stack([HALVES, HALVES])[None], torch.stack([QUARTERS, HALVES])[None])
    assert spans.item() == pytest.approx((THERE + BACK) / 4), "the mean of start and end"


def test_the_divergence_moves_both_predictions() -> None:
    first, second = HALVES[None].clone().requires_grad_(), QUARTERS[None].clone().requires_grad_()
    divergence(first, second).backward()
    for logits, sign in ((first, -1), (second, 1)):  # of the first class, to which they give 0.5 and 0.25
        assert logits.grad is not None
        assert torch.sign(logits.grad).tolist() == [[-sign, sign]]


def test_the_loss_is_the_mean_of_two_predictions_and_half_of_the_weighted_divergence(task: Classification) -> None:
    batch = task.collate(task.examples("train"))
    model = Scripted(torch.stack([HALVES, QUARTERS, QUARTERS, QUARTERS]))  # of both examples, then again
    entropies = (log(2) + log(4)) / 2, log(4 / 3)  # of class 0, then of class 1
    expected = sum(entropies) + 3 * (THERE + BACK) / 4
    assert rdrop_loss(task, model, batch, 3.0).item() == pytest.approx(expected)


def test_predictions_that_agree_have_the_tasks_loss_and_dropout_sets_them_apart(tmp_path: Path) -> None:
    sentences = Classification(tiny_sentences(tmp_path, ROWS), TOKENIZER, 32)
    settings = tiny_answers(30)
    passages = tiny_questions(tmp_path, "Ada Lund was born in 1601.", {"who was born?": "Ada Lund", "when?": "1601"})
    tasks: tuple[Any, ...] = (sentences, ExtractiveTask(passages, TOKENIZER, settings))
    for task in tasks:
        body = make_model(task.head, tiny_config("modernbert", TOKENIZER), 0, "eager", task.classes)
        set_dropout(body, 0.5)
        model, batch = task.wrap(body), task.collate(task.examples("train"))
        assert "mask" in batch, "one input is padded"
        plain = task.loss(task.scores(model.eval(), batch), batch)
        torch.testing.assert_close(rdrop_loss(task, model, batch, 5.0), plain)
        losses = []
        for weight in (0.0, 5.0):
            torch.manual_seed(1)
            losses.append(rdrop_loss(task, model.train(), batch, weight).item())
        assert losses[0] < losses[1] < float("inf")


def test_training_has_the_loss_of_its_settings(task: Classification) -> None:
    model, losses = make_model("classifier", tiny_config("modernbert", TOKENIZER), 0, "eager"), []
    set_dropout(model, 0.5)
    for weight in (0.0, 2.0):
        settings = FineTuneSettings(lr=0.1, epochs=1, batch_size=2, max_length=32, dropout=0.5, rdrop=weight)
        objective = TaskObjective(task, settings, 1)
        part = objective.part([0, 1], slice(None), tiny_device())
        torch.manual_seed(1)
        losses.append(objective.loss(model.train(), part).item())
        torch.manual_seed(1)
        expected = rdrop_loss(task, model, part, weight) if weight else task.loss(task.scores(model, part), part)
        assert losses[-1] == expected.item()
    assert losses[0] != losses[1]


@pytest.mark.parametrize(("family", "differs"), [("modernbert", True), ("bert", False), ("roberta", False)])
def test_on_a_frozen_body_only_the_heads_dropout_sets_predictions_apart(
    tmp_path: Path, family: str, differs: bool
) -> None:
    """For questions BERT and RoBERTa have none in the head."""
    passages = tiny_questions(tmp_path, "Ada Lund was born in 1601.", {"who was born?": "Ada Lund", "when?": "1601"})
    task = ExtractiveTask(passages, TOKENIZER, tiny_answers(30))
    body = make_model(task.head, tiny_config(family, TOKENIZER), 0, "eager")
    set_dropout(body, 0.5)
    read_method({}, "frozen").tune(body, task.head)
    model, losses = task.wrap(body), []
    with computed_once(task, model, {"train": task.examples("train")}, 2, tiny_device()) as prepared:
        batch = task.collate(prepared.parts["train"])
        for weight in (0.0, 5.0):
            torch.manual_seed(1)
            losses.append(rdrop_loss(task, model.train(), batch, weight).item())
    assert (losses[0] < losses[1]) == differs
    assert differs or losses[0] == losses[1]
