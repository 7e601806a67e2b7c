"""Padded batches: which models need a mask, and that none of them makes a GPU wait for it."""

from pathlib import Path
from typing import Any

import pytest
import torch

from retrace.finetuning.task import Task
from retrace.models.heads import make_model, objective_of, takes_segments
from retrace.tasks.classification import Classification
from retrace.tasks.question_answering.extractive import ExtractiveTask
from tests.counting import Dispatched
from tests.tiny import FAMILIES, tiny_answers, tiny_config, tiny_questions, tiny_sentences, tiny_tokenizer

TOKENIZER = tiny_tokenizer()
TEXTS = ["the ale was stale\t0", "the songs were charming and the hall was full .\t1", "the river\t1"]
CONTEXT = "The guild of weavers was founded by Ada Lund in the year 1601."
ASKED = {"who?": "Ada Lund", "in the year of the guild?": "1601", "what was it that was founded by Ada Lund?": ""}


def _started(name: str, folder: Path, family: str, attention: str) -> tuple[Task[Any], torch.nn.Module, list[Any]]:
    """A task, its model, and its examples, which are of several lengths."""
    config = tiny_config(family, TOKENIZER)
    if name == "squad":
        task = ExtractiveTask(tiny_questions(folder, CONTEXT, ASKED), TOKENIZER, tiny_answers(60))
    else:
        source, causal = tiny_sentences(folder, [*TEXTS]), objective_of(config) == "causal"
        task = Classification(source, TOKENIZER, 32, takes_segments(config), causal)
    body: Any = make_model(task.head, config, 0, attention, task.classes)
    return task, task.wrap(body), task.examples("dev")


@pytest.mark.parametrize("attention", ["eager", "sdpa", "lean"])
@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("name", ["sst2", "squad"])
@torch.no_grad()
def test_padding_changes_no_score(tmp_path: Path, name: str, family: str, attention: str) -> None:
    """A batch of one has no padding."""
    task, model, examples = _started(name, tmp_path, family, attention)
    together = task.scores(model.eval(), task.collate(examples))
    for example, row in zip(examples, together, strict=True):
        (alone,) = task.scores(model, task.collate([example]))
        torch.testing.assert_close(row[: len(alone)], alone, atol=1e-5, rtol=1e-5)
    assert len({task.length(example) for example in examples}) > 1


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("name", ["sst2", "squad"])
def test_attention_gets_a_mask_only_if_a_token_would_see_padding(tmp_path: Path, monkeypatch, name, family) -> None:
    """Without one the kernels for it are faster; and nobody looks at the mask's values."""
    found, attend = list[bool](), torch.nn.functional.scaled_dot_product_attention

    def spy(*given: Any, **named: Any) -> torch.Tensor:
        found.append(named.get("attn_mask") is not None)
        return attend(*given, **named)

    monkeypatch.setattr(torch.nn.functional, "scaled_dot_product_attention", spy)
    task, model, examples = _started(name, tmp_path, family, "sdpa")
    for chosen, is_masked in ((examples, family != "llama"), (examples[:1] * 2, False)):
        found.clear()
        batch = task.collate(chosen)
        with Dispatched() as dispatched:
            task.scores(model.train(), batch)
        assert set(found) == {is_masked}
        assert dispatched.waits.total() == 0
