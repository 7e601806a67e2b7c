"""Tasks with tokenizers in the layouts of published models."""

from pathlib import Path

import numpy as np
import pytest
from tokenizers import Tokenizer, models, normalizers, processors
from transformers import AutoTokenizer

from retrace.datasets.squad import Answer, Question
from retrace.tasks.classification import Classification
from retrace.tasks.question_answering.extractive import COMMON, NONE, RARE, ExtractiveTask, best_span
from retrace.tasks.question_answering.generative import GenerativeTask
from retrace.tasks.question_answering.windows import window_questions
from retrace.tokens.settings import SpecialTokens
from retrace.tokens.tokenizer import SubwordTokenizer, load_tokenizer
from tests.hub.content.models import BERT, LLAMA, published_models, write_model
from tests.tiny import tiny_answers, tiny_questions, tiny_sentences

CONTEXT = " The guild of weavers  was founded by Ada Lund, in 1601; café and naïve. "
ASKED = "Who founded the guild?"
every_layout = pytest.mark.parametrize("name", list(published_models()))


def _question(answer: str) -> Question:
    return Question("q", CONTEXT, ASKED, (Answer(answer, CONTEXT.index(answer)),))


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
def test_texts_and_windows_are_what_transformers_makes_of_them(tmp_path: Path, name: str) -> None:
    folder = write_model(tmp_path / "model", name)
    tokenizer, theirs = load_tokenizer(folder), AutoTokenizer.from_pretrained(folder)
    source = tiny_sentences(tmp_path, [f"{ASKED}\t1"])
    (example,) = Classification(source, tokenizer, 64).examples("dev")
    assert example.ids == theirs(ASKED)["input_ids"]
    (window,), pair = window_questions("squad", tokenizer, [_question("1601")], 120, 10), theirs(ASKED, CONTEXT)
    assert window.ids.tolist() == pair["input_ids"]
    if name == BERT:
        assert window.segments.tolist() == pair["token_type_ids"]


@every_layout
def test_words_of_the_question_are_found_in_the_passage(tmp_path: Path, name: str) -> None:
    tokenizer = load_tokenizer(write_model(tmp_path / "model", name))
    source, settings = tiny_questions(tmp_path, CONTEXT, {ASKED: "Ada Lund"}), tiny_answers(120, question_match=True)
    (window,) = ExtractiveTask(source, tokenizer, settings).examples("dev")
    spans = window.spans[(window.match >= COMMON) & (window.match <= RARE)]
    assert "".join(CONTEXT[start:end] for start, end in spans) == "Theguildfounded"
    assert (window.match[window.passage.stop :] == NONE).all()


def test_llamas_prompts_and_answers_are_running_text(tmp_path: Path) -> None:
    tokenizer = load_tokenizer(write_model(tmp_path / "model", LLAMA))
    reading = tiny_answers(120, answers="generative", max_answer_length=12)
    task = GenerativeTask(tiny_questions(tmp_path, CONTEXT, {ASKED: "Ada Lund"}), tokenizer, reading)
    (example,) = task.examples("train")
    prompt = tokenizer.decode(example.ids.tolist(), skip_special_tokens=False)
    assert prompt == f"<|begin_of_text|>{CONTEXT} Question: {ASKED} Answer:"
    assert tokenizer.decode(example.answer, skip_special_tokens=False) == " Ada Lund<|end_of_text|>"
    long = tiny_questions(tmp_path / "long", CONTEXT * 5, {ASKED: "Ada Lund"})
    (cut,) = GenerativeTask(long, tokenizer, reading.model_copy(update={"max_length": 60})).examples("dev")
    assert len(cut.ids) + reading.max_answer_length == 60  # no token of room is left


def _spaced() -> SubwordTokenizer:
    """A token for each character, and a mark for each space and before every text, as the first Llamas have it."""
    space = "\u2581"
    characters = sorted({*CONTEXT, *ASKED, *"Question: Answer:"} - {" "})
    numbers = {token: number for number, token in enumerate(["<unk>", "<s>", "</s>", space, *characters])}
    tokenizer = Tokenizer(models.BPE(numbers, [], unk_token="<unk>"))
    tokenizer.normalizer = normalizers.Sequence([normalizers.Prepend(space), normalizers.Replace(" ", space)])
    tokenizer.add_special_tokens(["<unk>", "<s>", "</s>"])
    tokenizer.post_processor = processors.TemplateProcessing(
        single="<s> $A", pair="<s> $A <s>:1 $B:1", special_tokens=[("<s>", numbers["<s>"])]
    )
    return SubwordTokenizer(tokenizer, SpecialTokens("<s>", "</s>", "</s>", "<unk>", None))


def test_a_space_that_the_tokenizer_puts_before_every_text_is_no_second_one_in_a_prompt(tmp_path: Path) -> None:
    """With one more, no answer would be found in the passage."""
    tokenizer, reading = _spaced(), tiny_answers(200, answers="generative", max_answer_length=12)
    task = GenerativeTask(tiny_questions(tmp_path, CONTEXT, {ASKED: "Ada Lund"}), tokenizer, reading)
    (example,) = task.examples("train")
    whole = tokenizer.encode(f"{CONTEXT} Question: {ASKED} Answer:", add_special_tokens=False).ids
    assert example.ids.tolist() == [tokenizer.token_to_id("<s>"), *whole]
    (row,) = task.rows([example], [np.array([0, 0, 0, *example.answer], dtype=np.float32)])
    assert (row["text"], row["start"]) == ("Ada Lund", CONTEXT.index("Ada Lund"))
