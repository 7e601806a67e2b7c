import re
from pathlib import Path
from typing import Any, cast

import numpy as np
import pytest
import torch
from torch import Tensor
from torch.nn import functional

from retrace.core.errors import InputError
from retrace.core.settings import build
from retrace.finetuning.run import TaskObjective, fine_tune
from retrace.finetuning.settings import FineTuneSettings
from retrace.finetuning.task import predict
from retrace.models.heads import make_model, read_model
from retrace.tasks.question_answering.generative import IGNORED, GenerativeTask, Generator
from retrace.tasks.question_answering.settings import AnswerSettings
from retrace.training.settings import OptimizerSettings
from tests.tiny import tiny_answers, tiny_config, tiny_device, tiny_pretrained, tiny_questions, tiny_tokenizer

TOKENIZER = tiny_tokenizer()
GUILD = "The guild of weavers was founded by Ada Lund in the year 1601."
RIVER = "The river of the town was the Thorndel, which nobody doubts."
BY_HEART = {"who founded it?": "Ada Lund", "when?": "1601", "was it full?": "", "what was it?": "The guild of weavers"}


def _task(folder: Path, asked: dict[str, str], context: str = GUILD, **settings: Any) -> GenerativeTask:
    reading = tiny_answers(64, answers="generative", max_answer_length=8).model_copy(update=settings)
    return GenerativeTask(tiny_questions(folder, context, asked), TOKENIZER, reading)


def _tokens(text: str) -> list[int]:
    return TOKENIZER.encode(text, add_special_tokens=False).ids


def _model(task: GenerativeTask) -> torch.nn.Module:
    return task.wrap(make_model("language_model", tiny_config("llama", TOKENIZER), 0, "eager"))


def test_the_answer_and_the_end_are_the_targets(tmp_path: Path) -> None:
    task = _task(tmp_path, {"who?": "Ada Lund", "why?": ""})
    examples = task.examples("train")
    batch = task.collate(examples)
    assert set(batch) == {"ids", "labels", "at"}
    cls, sep, pad = (TOKENIZER.token_to_id(token) for token in ("[CLS]", "[SEP]", "[PAD]"))
    prompts = [[cls, *_tokens(f"{GUILD} Question: {question} Answer:")] for question in ("who?", "why?")]
    name = _tokens("Ada Lund")
    width = len(prompts[0]) + len(name)
    assert batch["ids"].tolist() == [prompts[0] + name, prompts[1] + [pad] * (width - len(prompts[1]))]
    assert batch["labels"].tolist() == [
        [IGNORED] * (len(prompts[0]) - 1) + [*name, sep],
        [IGNORED] * (len(prompts[1]) - 1) + [sep] + [IGNORED] * (width - len(prompts[1])),
    ]
    assert [task.length(example) for example in examples] == [width, len(prompts[1])]
    places = batch["labels"].flatten().ne(IGNORED).nonzero()[:, 0].tolist()
    assert batch["at"].tolist() == places
    # A compiled model gets one of four numbers of labels, multiples of 8, where there are at most 2 × 9.
    assert task.collate(examples, width)["at"].tolist() == places + [0] * (8 - len(places))


def test_prompts_are_padded_on_the_left(tmp_path: Path) -> None:
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
    loss = task.loss(task.scores(model, batch), batch)
    logits: Tensor = cast(Any, model).body(batch["ids"]).logits
    expected = functional.cross_entropy(logits.mT, batch["labels"], ignore_index=IGNORED, reduction="sum")
    assert sum(map(task.targets, task.examples("train"))) == len(_tokens("Ada Lund")) + 2
    torch.testing.assert_close(loss, expected)
    loss.backward()
    assert all(weight.grad is not None and weight.grad.any() for weight in model.parameters())


@pytest.mark.parametrize("max_length", [44, 52, 60])
def test_long_passages_are_cut_to_what_fits(tmp_path: Path, max_length: int) -> None:
    asked = {"nobody doubts the river?": "Thorndel", "what was founded?": "1601", "why did nobody?": ""}
    context = " ".join([GUILD, *["Although the ale was stale, the hall was full."] * 3, RIVER])
    task = _task(tmp_path, asked, context, max_length=max_length, doc_stride=4)
    for part in ("train", "dev"):
        examples = task.examples(part)
        assert [example.window.question.id for example in examples] == list(asked)
        assert all(len(example.ids) + 8 <= max_length for example in examples)
    river, founded, nobody = task.examples("train")
    assert 0 not in (river.window.start, founded.window.start)
    assert "nobody" in _part(nobody)
    river, founded, _ = map(_part, task.examples("dev"))
    assert "doubts" in river, "the window with most of the question's words"
    assert "founded" in founded


def test_words_before_a_window_do_not_count(tmp_path: Path) -> None:
    """The last window has one word of the question, the first one all others."""
    context = " ".join([GUILD, *["Although the ale was stale, the hall was full."] * 3, RIVER])
    task = _task(tmp_path, {"guild weavers founded thorndel?": ""}, context, max_length=44, doc_stride=4)
    (example,) = task.examples("dev")
    assert "weavers" in _part(example)


def _part(example: Any) -> str:
    spans = example.window.spans[example.window.passage]
    return example.window.question.context[spans[0, 0] : spans[-1, 1]]


def _answer(task: GenerativeTask, text: str) -> tuple[str, int | None]:
    """How a generated text is spelt, and where it starts in the passage."""
    ids = [*_tokens(text), *[TOKENIZER.token_to_id("[SEP]")] * 8][:8]
    (row,) = task.rows(task.examples("dev"), [np.array([-3.0, -1.0, -2.0, *ids], dtype=np.float32)])
    return row["text"], row["start"]


def test_answers_that_occur_in_the_passage_are_spelt_as_there(tmp_path: Path) -> None:
    task = _task(tmp_path, {"who?": ""}, context="Ada Lund's hall was the 3.16 hall of the Thorndel.", max_length=80)
    found = [_answer(task, text) for text in ("ada lund's", "the 3.16", "the hall", "")]
    assert found == [("Ada Lund's", 0), ("the 3.16", 20), ("the hall", None), ("", None)]
    assert TOKENIZER.decode(_tokens("3.16")) != "3.16"
    assert _answer(task, "the hall of the Thorndel which")[0].startswith("the hall of the th")
    whole = _task(tmp_path / "whole", {"who?": ""}, context="3.16")
    assert _answer(whole, "3.16") == ("3.16", 0), "the answer is the whole passage"


def test_a_tiny_model_learns_questions_by_heart(tmp_path: Path) -> None:
    optimiser = OptimizerSettings(kind="adamw")
    settings = FineTuneSettings(lr=0.01, epochs=80, batch_size=5, max_length=64, optimizer=optimiser)
    task = _task(tmp_path, BY_HEART)
    _, first, *_, last = fine_tune(task, _model(task), settings, 1, tiny_device(), "t").epochs["dev"]
    assert last["loss"]["training_loss"] < 0.1 < first["loss"]["training_loss"]
    assert {row["id"]: "" if row["null_score"] > row["score"] else row["text"] for row in last["rows"]} == BY_HEART
    assert all(row["score"] > np.log(0.5) for row in last["rows"])
    assert [row["id"] for row in last["rows"] if row["null_score"] > np.log(0.5)] == ["was it full?"]


def test_a_masked_family_cannot_generate(tmp_path: Path) -> None:
    base, reading = tiny_pretrained(tmp_path, "bert"), tiny_answers(64, answers="generative")
    with pytest.raises(InputError, match=r"news.answers: generative is not allowed with family: bert; expected one of"):
        GenerativeTask.read(tmp_path / "news", base, reading)


def test_answers_that_leave_nothing_to_read_are_an_error(tmp_path: Path) -> None:
    """A prompt of 64 tokens has a begin token and both cues too."""
    left = 64 - 1 - len(_tokens("Question: Answer:"))
    (example, *_) = _task(tmp_path, BY_HEART, max_answer_length=left - 16).examples("dev")
    assert len(example.ids) == 64 - (left - 16), "16 tokens to read are enough"
    most, said = left - 15, "of squad.max_length (64) it leaves 15 tokens to read, fewer than 16"
    with pytest.raises(InputError, match=re.escape(f"squad.max_answer_length: {most} is not allowed; {said}")):
        _task(tmp_path, BY_HEART, max_answer_length=most)


def test_question_match_is_for_spans() -> None:
    squad = {"lr": 0.01, "epochs": 1, "batch_size": 2, "max_length": 64}
    with pytest.raises(InputError, match=r"squad\.question_match: true is not allowed; it needs answers: extractive"):
        build(AnswerSettings, {"squad": {**squad, "answers": "generative", "question_match": True}}, "squad")


NEVER, PAD, MOST = 4, 0, 8
PROMPTS = ([2, 20, 21, 22, 23], [2, 30], [2, 41, 42, 43, 44, 45, 46, 47, 48], [2, 50, 51])


def _writer() -> Generator:
    """A random model whose next tokens differ clearly."""
    body = make_model("language_model", tiny_config("llama", tiny_tokenizer()), 0, "eager")
    for weight in body.parameters():
        if weight.ndim == 2:
            torch.nn.init.normal_(weight, std=0.3, generator=torch.Generator().manual_seed(weight.numel()))
    return Generator(body).eval()


@torch.no_grad()
def _write(writer: Generator, *prompts: list[int], end: int = NEVER) -> Tensor:
    width = max(map(len, prompts))
    ids = torch.tensor([[PAD] * (width - len(prompt)) + prompt for prompt in prompts])
    own = writer.body.generation_config  # which is saved with the model
    found = writer.generate(ids, ids.ne(PAD).long(), MOST, end)
    assert writer.body.generation_config is own
    return found


@torch.no_grad()
def _step_by_step(writer: Generator, prompt: list[int], end: int) -> tuple[list[int], float, float]:
    """The likeliest token after each prefix, without a cache; their log-probability, and that of ending at once."""
    ids, total, nulls = list(prompt), 0.0, []
    while len(ids) < len(prompt) + MOST and end not in ids[len(prompt) :]:
        logs: Tensor = writer.body(torch.tensor([ids])).logits[0, -1].log_softmax(-1)
        nulls.append(logs[end].item())
        ids.append(int(logs.argmax()))
        total += logs.max().item()
    return ids[len(prompt) :], total, nulls[0]


@pytest.mark.parametrize("place", [None, 0, 2, 7])
def test_generation_is_greedy_whatever_the_batch(place: int | None) -> None:
    """The end token is one that is never written, or the one that the model writes at this place after one prompt."""
    writer = _writer()
    end = NEVER if place is None else _step_by_step(writer, PROMPTS[0], NEVER)[0][place]
    together = _write(writer, *PROMPTS, end=end)
    assert together.shape == (len(PROMPTS), 2 + MOST)
    for row, prompt in enumerate(PROMPTS):
        ids, score, null = _step_by_step(writer, prompt, end)
        alone = _write(writer, prompt, end=end)
        for found, at in ((alone, 0), (together, row)):
            assert found[at, 2:].tolist() == ids + [end] * (MOST - len(ids))
            assert found[at, :2].tolist() == pytest.approx([score, null], abs=1e-4)


def test_sampling_settings_of_the_checkpoint_are_ignored(tmp_path: Path) -> None:
    writer = _writer()
    greedy = _write(writer, *PROMPTS)
    writer.body.generation_config.update(do_sample=True, temperature=9.0, top_p=0.9)
    writer.body.generation_config.update(repetition_penalty=50.0, no_repeat_ngram_size=1, min_length=6)
    writer.save_pretrained(tmp_path, writer.state_dict())
    again = Generator(read_model("language_model", tmp_path, 0, "eager")).eval()
    assert cast(Any, again.body).generation_config.temperature == 9.0
    assert torch.equal(_write(again, *PROMPTS), greedy)


def test_losses_are_means_over_the_tokens_of_answers(tmp_path: Path) -> None:
    """In evaluation and in training, not over questions."""
    task = _task(tmp_path, BY_HEART)
    examples, model = task.examples("train"), _model(task).eval()
    batch, tokens = task.collate(examples), sum(len(_tokens(answer)) + 1 for answer in BY_HEART.values())
    with torch.no_grad():
        summed = task.loss(task.scores(model, batch), batch).item()
    _, loss = predict(task, model, examples, 2, tiny_device())
    assert loss == pytest.approx(summed / tokens, rel=1e-5)
    objective = TaskObjective(task, FineTuneSettings(lr=0.01, epochs=1, batch_size=3, max_length=64), 1)
    assert sum(objective.sizes(batch)[0] for batch in objective.batches(1)) == tokens > len(examples)


def test_a_gold_answer_is_cut_to_what_may_be_generated(tmp_path: Path) -> None:
    """So prompt and answer are never longer than the longest input."""
    (example,) = _task(tmp_path, {"who?": "Ada Lund in the year 1601"}, max_answer_length=3).examples("train")
    assert example.answer == [*_tokens("Ada Lund in the year 1601")[:3], TOKENIZER.token_to_id("[SEP]")]
