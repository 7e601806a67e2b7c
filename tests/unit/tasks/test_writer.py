from pathlib import Path

import pytest
import torch
from torch import Tensor
from transformers import LlamaForCausalLM

from retrace.models.heads import make_model, read_model
from retrace.tasks.question_answering.generative import Generated, Generator
from tests.tiny import tiny_config, tiny_tokenizer

NEVER, PAD, MOST = 4, 0, 8
PROMPTS = ([2, 20, 21, 22, 23], [2, 30], [2, 41, 42, 43, 44, 45, 46, 47, 48], [2, 50, 51])


def _writer(spread: float = 0.3) -> Generator:
    """A random model whose next tokens differ clearly."""
    body = make_model("language_model", tiny_config("llama", tiny_tokenizer()), 0, "eager")
    for weight in body.parameters():
        if weight.ndim == 2:
            torch.nn.init.normal_(weight, std=spread, generator=torch.Generator().manual_seed(weight.numel()))
    return Generator(body).eval()


@torch.no_grad()
def _write(writer: Generator, *prompts: list[int], end: int = NEVER) -> Generated:
    width = max(map(len, prompts))
    ids = torch.tensor([[PAD] * (width - len(prompt)) + prompt for prompt in prompts])
    mask = torch.tensor([[0] * (width - len(prompt)) + [1] * len(prompt) for prompt in prompts])
    return writer.generate(ids, mask, MOST, end)


@torch.no_grad()
def _step_by_step(writer: Generator, prompt: list[int], end: int) -> tuple[list[int], float, float]:
    """The likeliest token after each prefix, which is read anew each time; its log-probabilities, and the end's."""
    ids, total, null = list(prompt), 0.0, None
    while len(ids) < len(prompt) + MOST and end not in ids[len(prompt) :]:
        logs: Tensor = writer.body(torch.tensor([ids])).logits[0, -1].log_softmax(-1)
        null = logs[end].item() if null is None else null
        ids.append(int(logs.argmax()))
        total += logs.max().item()
    assert null is not None
    return ids[len(prompt) :], total, null


@pytest.mark.parametrize("place", [None, 0, 2, 7])
def test_writing_is_the_likeliest_token_each_time_whatever_the_batch(place: int | None) -> None:
    """The end is one that is never written, or what one prompt is followed by at a place."""
    writer = _writer()
    end = NEVER if place is None else _step_by_step(writer, PROMPTS[0], NEVER)[0][place]
    together = _write(writer, *PROMPTS, end=end)
    assert together.ids.shape == (len(PROMPTS), MOST)
    for row, prompt in enumerate(PROMPTS):
        ids, score, null = _step_by_step(writer, prompt, end)
        alone = _write(writer, prompt, end=end)
        for found, at in ((alone, 0), (together, row)):
            assert found.ids[at].tolist() == ids + [end] * (MOST - len(ids))
            assert found.score[at].item() == pytest.approx(score, abs=1e-4)
            assert found.null_score[at].item() == pytest.approx(null, abs=1e-4)


def test_what_ends_at_once_scores_as_no_answer() -> None:
    writer = _writer()
    first = int(_write(writer, PROMPTS[1]).ids[0, 0])
    empty = _write(writer, PROMPTS[1], end=first)
    assert empty.ids.tolist() == [[first] * MOST]
    assert torch.equal(empty.score, empty.null_score)


def test_settings_for_sampling_that_came_with_the_weights_change_nothing(tmp_path: Path) -> None:
    writer = _writer()
    greedy = _write(writer, *PROMPTS)
    writer.body.generation_config.update(do_sample=True, temperature=9.0, top_p=0.9)
    writer.save_pretrained(tmp_path)
    again = Generator(read_model("language_model", tmp_path, 0, "eager")).eval()
    assert isinstance(again.body, LlamaForCausalLM)
    assert again.body.generation_config.temperature == 9.0
    assert torch.equal(_write(again, *PROMPTS).ids, greedy.ids)
