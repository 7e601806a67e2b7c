"""Tasks with tokenizers in the layouts of published models."""

from pathlib import Path

import numpy as np
import pytest
from transformers import AutoTokenizer

from retrace.datasets.squad import Answer, Question
from retrace.tasks.classification import Classification
from retrace.tasks.question_answering.extractive import COMMON, NONE, RARE, ExtractiveTask, best_span
from retrace.tasks.question_answering.generative import UNASKED, GenerativeTask
from retrace.tasks.question_answering.windows import window_questions
from retrace.tokens.tokenizer import load_tokenizer
from tests.hub.content.models import LLAMA, published_models, write_model
from tests.tiny import tiny_answers, tiny_questions, tiny_sentences

CONTEXT = " The guild of weavers  was founded by Ada Lund, in 1601; café and naïve. "
ASKED = "Who founded the guild?"
every_layout = pytest.mark.parametrize("name", list(published_models()))


def _question(answer: str) -> Question:
    return Question("q", "T", CONTEXT, ASKED, (Answer(answer, CONTEXT.index(answer)),))


@every_layout
@pytest.mark.parametrize("answer", ["The guild", "Ada Lund", "1601", "café", "naïve"])
def test_answers_are_marked_and_read_without_the_space_before(tmp_path: Path, name: str, answer: str) -> None:
    tokenizer = load_tokenizer(write_model(tmp_path / "model", name))
    (window,) = window_questions("squad", tokenizer, [_question(answer)], 120, 10)
    assert window.start >= window.passage.start
    scores = np.zeros((len(window.ids), 2))
    scores[window.start, 0] = scores[window.end, 1] = 1.0
    assert best_span(window, scores, 30).text == answer
    for start, end in window.spans[window.passage]:
        assert start == end or not CONTEXT[start].isspace()


@every_layout
def test_a_window_is_what_transformers_makes_of_a_pair(tmp_path: Path, name: str) -> None:
    folder = write_model(tmp_path / "model", name)
    (window,) = window_questions("squad", load_tokenizer(folder), [_question("1601")], 120, 10)
    theirs = AutoTokenizer.from_pretrained(folder)(ASKED, CONTEXT)
    assert window.ids.tolist() == theirs["input_ids"]
    if "token_type_ids" in theirs and "bert-base-uncased" in name:
        assert window.segments.tolist() == theirs["token_type_ids"]


@every_layout
def test_windows_of_a_long_passage_have_the_maximum_length_and_cover_it(tmp_path: Path, name: str) -> None:
    tokenizer = load_tokenizer(write_model(tmp_path / "model", name))
    windows = list(window_questions("squad", tokenizer, [_question("1601")], 36, 5))
    assert len(windows) > 1
    assert all(len(window.ids) <= 36 for window in windows)
    covered = {i for window in windows for start, end in window.spans for i in range(start, end)}
    assert covered == {i for i, character in enumerate(CONTEXT) if not character.isspace()}


@every_layout
def test_sentences_are_what_transformers_makes_of_them(tmp_path: Path, name: str) -> None:
    folder = write_model(tmp_path / "model", name)
    source = tiny_sentences(tmp_path / "data", ["sentence\tlabel", "the songs were charming\t1", "stale\t0"])
    examples = Classification("sst2", source, load_tokenizer(folder), 64).examples("dev")
    theirs = AutoTokenizer.from_pretrained(folder)
    expected = [theirs(text)["input_ids"] for text in ("the songs were charming", "stale")]
    assert [example.ids for example in examples] == expected


@every_layout
def test_words_of_the_question_are_found_in_the_passage(tmp_path: Path, name: str) -> None:
    tokenizer = load_tokenizer(write_model(tmp_path / "model", name))
    source, settings = tiny_questions(tmp_path, CONTEXT, {ASKED: "Ada Lund"}), tiny_answers(120, question_match=True)
    (window,) = ExtractiveTask("squad", source, tokenizer, settings).examples("dev")
    found = {
        CONTEXT[window.spans[token, 0] : window.spans[token, 1]]
        for token in np.flatnonzero((window.match >= COMMON) & (window.match <= RARE))
    }
    assert {text.lower() for text in found} - {""} <= set(_pieces("founded the guild"))  # a space may be a piece
    assert found - {""}
    assert (window.match[window.passage.stop :] == NONE).all()


def _pieces(words: str) -> list[str]:
    return [word[i:j] for word in words.split() for i in range(len(word)) for j in range(i + 1, len(word) + 1)]


def test_llamas_prompts_and_answers_are_running_text(tmp_path: Path) -> None:
    tokenizer = load_tokenizer(write_model(tmp_path / "model", LLAMA))
    reading = tiny_answers(120, answers="generative", max_answer_length=12)
    task = GenerativeTask("squad", tiny_questions(tmp_path, CONTEXT, {ASKED: "Ada Lund"}), tokenizer, reading)
    (example,) = task.examples("train")
    prompt = tokenizer.decode(example.ids.tolist(), skip_special_tokens=False)
    assert prompt == f"<|begin_of_text|>{CONTEXT} Question: {ASKED} Answer:"
    assert tokenizer.decode(example.answer, skip_special_tokens=False) == " Ada Lund<|end_of_text|>"
    labels = task.collate([example])["labels"][0]
    assert labels[labels != UNASKED].tolist() == example.answer
    assert len(example.ids) + reading.max_answer_length <= 120
    long = tiny_questions(tmp_path / "long", CONTEXT * 5, {ASKED: "Ada Lund"})
    (cut,) = GenerativeTask("squad", long, tokenizer, reading.model_copy(update={"max_length": 60})).examples("dev")
    assert len(cut.ids) + reading.max_answer_length == 60  # no token of room is left
