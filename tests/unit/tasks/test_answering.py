import json
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch

from retrace.core.errors import InputError
from retrace.core.settings import build
from retrace.evaluation.outcomes import decided_answers
from retrace.finetuning.finetune import TaskObjective, fine_tune, predict
from retrace.finetuning.settings import FineTuneSettings
from retrace.models.heads import make_model
from retrace.tasks.question_answering.generative import UNASKED, GenerativeTask, check_family
from retrace.tasks.question_answering.settings import ReadingSettings
from retrace.training.settings import OptimizerSettings
from tests.tiny import MASKED_FAMILIES, tiny_config, tiny_device, tiny_tokenizer

TOKENIZER = tiny_tokenizer()
GUILD = "The guild of weavers was founded by Ada Lund in the year 1601."
RIVER = "The river of the town was the Thorndel, which nobody doubts."
BY_HEART = {
    "who founded the guild?": "Ada Lund", "when?": "1601", "of whom was the guild?": "weavers",
    "was it full?": "", "what was it?": "The guild of weavers",
}  # fmt: skip


def _source(folder: Path, asked: dict[str, str], context: str = GUILD) -> Path:
    """Data of which each part holds `asked`, questions and their answers, on one passage."""
    (folder / "squad").mkdir(parents=True)
    qas: list[dict[str, Any]] = [
        {
            "id": question,
            "question": question,
            "answers": [{"text": text, "answer_start": context.index(text)}] if text else [],
        }
        for question, text in asked.items()
    ]
    document = {"data": [{"title": "T", "paragraphs": [{"context": context, "qas": qas}]}]}
    for part in ("train", "dev"):
        (folder / "squad" / f"{part}.json").write_text(json.dumps(document))
    return folder


def _task(
    folder: Path, asked: dict[str, str], max_length: int = 64, context: str = GUILD, **settings: Any
) -> GenerativeTask:
    reading = ReadingSettings(answers="generative", **{"max_answer_length": 8, **settings})
    return GenerativeTask("squad", _source(folder, asked, context), TOKENIZER, max_length, reading)


def _tokens(text: str) -> list[int]:
    return TOKENIZER.encode(text, add_special_tokens=False).ids


def _model(task: GenerativeTask) -> torch.nn.Module:
    return task.wrap(make_model("language_model", tiny_config("llama", TOKENIZER), 0, "eager"))


def test_the_answer_and_the_end_are_the_targets(tmp_path: Path) -> None:
    task = _task(tmp_path, {"who?": "Ada Lund", "why?": ""})
    examples = task.examples("train")
    batch = task.collate(examples)
    assert set(batch) == {"ids", "labels"}
    cls, sep, pad = (TOKENIZER.token_to_id(token) for token in ("[CLS]", "[SEP]", "[PAD]"))
    prompts = [[cls, *_tokens(f"{GUILD} Question: {question} Answer:")] for question in ("who?", "why?")]
    name = _tokens("Ada Lund")
    width = len(prompts[0]) + len(name)
    assert batch["ids"].tolist() == [prompts[0] + name, prompts[1] + [pad] * (width - len(prompts[1]))]
    assert batch["labels"].tolist() == [
        [UNASKED] * (len(prompts[0]) - 1) + [*name, sep],
        [UNASKED] * (len(prompts[1]) - 1) + [sep] + [UNASKED] * (width - len(prompts[1])),
    ]
    assert [task.length(example) for example in examples] == [width, len(prompts[1])]


def test_prompts_of_the_validation_data_end_together(tmp_path: Path) -> None:
    task = _task(tmp_path, {"who?": "Ada Lund", "who founded the guild in the year?": ""})
    examples = task.examples("dev")
    batch = task.collate(examples)
    short, long = (example.ids.tolist() for example in examples)
    padding = len(long) - len(short)
    assert padding > 0
    assert batch["prompt"].tolist() == [[TOKENIZER.token_to_id("[PAD]")] * padding + short, long]
    assert batch["mask"].tolist() == [[0] * padding + [1] * len(short), [1] * len(long)]


def test_the_loss_is_that_of_the_targets_alone(tmp_path: Path) -> None:
    task = _task(tmp_path, {"who?": "Ada Lund", "why?": ""})
    batch, model = task.collate(task.examples("train")), _model(task)
    loss, count = task.loss(task.scores(model, batch), batch)
    expected = 0.0
    with torch.no_grad():
        for ids, labels in zip(batch["ids"], batch["labels"], strict=True):
            logs = model.body(ids[None]).logits[0].log_softmax(-1)  # pyright: ignore[reportCallIssue]
            expected -= sum(logs[at, label].item() for at, label in enumerate(labels.tolist()) if label != UNASKED)
    assert count == len(_tokens("Ada Lund")) + 2
    assert loss.item() == pytest.approx(expected, rel=1e-5)
    loss.backward()
    assert all(weight.grad is not None and weight.grad.any() for weight in model.parameters())


@pytest.mark.parametrize("max_length", [44, 52, 60])
def test_long_passages_are_cut_to_what_fits(tmp_path: Path, max_length: int) -> None:
    asked = {"nobody doubts the river?": "Thorndel", "what was founded?": "1601", "why did nobody?": ""}
    context = " ".join([GUILD, *["Although the ale was stale, the hall was full."] * 3, RIVER])
    task = _task(tmp_path, asked, max_length, context, doc_stride=4)
    for part in ("train", "dev"):
        examples = task.examples(part)
        assert [example.window.question.id for example in examples] == list(asked)
        assert all(len(example.ids) + 8 <= max_length for example in examples)
    river, founded, nobody = task.examples("train")
    assert river.window.start
    assert founded.window.start
    assert "nobody" in _part(nobody)
    river, founded, _ = task.examples("dev")
    assert "doubts" in _part(river), "the window with most of the question's words"
    assert "founded" in _part(founded)


def _part(example: Any) -> str:
    spans = example.window.spans[example.window.passage]
    return example.window.question.context[spans[0, 0] : spans[-1, 1]]


def _row(task: GenerativeTask, text: str, score: float = -1.0, null_score: float = -2.0) -> dict[str, Any]:
    end = TOKENIZER.token_to_id("[SEP]")
    ids = [*_tokens(text), *[end] * 8][:8]
    (row,) = task.rows(task.examples("dev"), [np.array([-3.0, score, null_score, *ids], dtype=np.float32)])
    return row


def test_answers_are_spelt_as_in_the_passage_where_they_stand_there(tmp_path: Path) -> None:
    task = _task(tmp_path, {"who?": ""}, context="Ada Lund's hall was the 3.16 hall of the Thorndel.", max_length=80)
    assert _row(task, "ada lund's")["text"] == "Ada Lund's"
    assert TOKENIZER.decode(_tokens("3.16")) != "3.16"
    assert _row(task, "the 3.16")["text"] == "the 3.16"
    assert _row(task, "the hall")["text"] == "the hall"
    assert _row(task, "the hall of the Thorndel which")["text"].startswith("the hall of the th")
    assert _row(task, "")["text"] == ""


@pytest.mark.parametrize(
    ("text", "score", "null_score", "decided"),
    [("1601", -1.0, -2.0, "1601"), ("1601", -2.0, -1.0, ""), ("", -1.0, -1.0, "")],
)
def test_no_answer_is_given_where_ending_at_once_is_likelier(
    tmp_path: Path, text: str, score: float, null_score: float, decided: str
) -> None:
    task = _task(tmp_path, {"who?": ""})
    assert decided_answers(pd.DataFrame([_row(task, text, score, null_score)])) == {"who?": decided}


def test_only_a_model_trained_on_unanswerable_questions_may_abstain(tmp_path: Path) -> None:
    task = _task(tmp_path, {"who?": "Ada Lund"})
    assert _row(task, "1601")["null_score"] is None
    assert decided_answers(pd.DataFrame([_row(task, "1601", -9.0, -1.0), _row(task, "")])) == {"who?": ""}


def test_answers_do_not_depend_on_the_batch(tmp_path: Path) -> None:
    task = _task(tmp_path, BY_HEART)
    model, examples = _model(task).eval(), task.examples("dev")
    (one, loss), (all_, same) = (predict(task, model, examples, size, tiny_device()) for size in (1, 16))
    np.testing.assert_allclose(np.stack(one), np.stack(all_), atol=1e-3)
    assert loss == pytest.approx(same)
    assert loss == pytest.approx(np.log(120), rel=0.1), "nats a token, of 120 that are about equally likely"


def test_a_tiny_model_learns_questions_by_heart(tmp_path: Path) -> None:
    optimiser = OptimizerSettings(kind="adamw")
    settings = FineTuneSettings(lr=0.01, epochs=80, batch_size=5, max_length=64, optimizer=optimiser)
    task = _task(tmp_path, BY_HEART)
    tuned = fine_tune(task, _model(task), settings, 1, tiny_device(), "t")
    assert tuned.losses[-1]["training_loss"] < 0.1 < tuned.losses[1]["training_loss"]
    last = [row for row in tuned.rows if row["epoch"] == 80]
    assert decided_answers(pd.DataFrame(last)) == BY_HEART
    assert all(row["score"] > np.log(0.5) for row in last)
    assert [row["id"] for row in last if row["null_score"] > np.log(0.5)] == ["was it full?"]


def test_processes_weigh_their_shares_by_the_targets(tmp_path: Path) -> None:
    task, settings = _task(tmp_path, BY_HEART), FineTuneSettings(lr=0.01, epochs=1, batch_size=5, max_length=64)
    objective, model = TaskObjective(task, settings, 1, torch.device("cpu")), _model(task)
    (whole, *shares) = (
        objective.loss(model, next(iter(objective.batches(1, share))))
        for share in (slice(None), slice(0, None, 2), slice(1, None, 2))
    )
    assert sum(count for _, count in shares) == whole[1]
    assert sum(loss.item() for loss, _ in shares) == pytest.approx(whole[0].item(), rel=1e-5)


@pytest.mark.parametrize("family", MASKED_FAMILIES)
def test_a_family_that_sees_what_follows_cannot_write(family: str) -> None:
    message = f"news.answers: generative is not allowed with family: {family}; expected one of llama"
    with pytest.raises(InputError, match=message):
        check_family(family, "news")


def test_answers_that_leave_nothing_to_read_are_an_error(tmp_path: Path) -> None:
    with pytest.raises(
        InputError, match=r"squad\.max_answer_length: 50 is not allowed; of squad\.max_length \(64\) it leaves"
    ):
        _task(tmp_path, BY_HEART, max_answer_length=50)


def test_question_match_is_for_spans() -> None:
    with pytest.raises(InputError, match=r"squad\.question_match: true is not allowed; .* answers: extractive alone"):
        build(ReadingSettings, {"squad": {"answers": "generative", "question_match": True}}, "squad")
