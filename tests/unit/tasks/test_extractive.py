import json
import re
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from transformers import AutoModelForQuestionAnswering, PreTrainedModel

from retrace.core.errors import InputError
from retrace.datasets.squad import Answer, Question
from retrace.models.heads import make_model, read_model
from retrace.tasks.question_answering.extractive import (
    COMMON,
    MIDDLING,
    NONE,
    RARE,
    SAME_BEGINNING,
    ExtractiveTask,
    Span,
    SpanModel,
    best_over_windows,
    best_span,
    match_kinds,
    word_shares,
)
from retrace.tasks.question_answering.windows import (
    ANYWHERE,
    Window,
    draw_windows,
    shortest_window,
    window_questions,
)
from retrace.tokens.tokenizer import PairFormat, SubwordTokenizer
from tests.tiny import FAMILIES, tiny_answers, tiny_config, tiny_questions, tiny_tokenizer

CONTEXT = (
    "the guild of weavers was founded by Ada Lund in the year 1601 , which nobody doubts . the river was the Thorndel ."
)
TOKENIZER = tiny_tokenizer()


def _question(answer: str, text: str = "who founded the guild?") -> Question:
    return Question("q", "T", CONTEXT, text, (Answer(answer, CONTEXT.index(answer)),) if answer else ())


@given(st.integers(20, 60), st.integers(1, 60), st.sampled_from(["Ada Lund", "1601", "Thorndel", "the guild", ""]))
@settings(max_examples=60, deadline=None)
def test_windows_cover_the_passage_and_mark_the_answer(max_length: int, stride: int, answer: str) -> None:
    windows = list(window_questions("squad", TOKENIZER, [_question(answer)], max_length, stride))
    covered = set()
    for window in windows:
        assert len(window.ids) <= max_length
        assert window.ids[0] == TOKENIZER.token_to_id("[CLS]")
        assert window.ids[-1] == TOKENIZER.token_to_id("[SEP]")
        assert window.segments.tolist() == [0] * window.passage.start + [1] * (len(window.ids) - window.passage.start)
        for start, end in window.spans[window.passage]:
            covered.update(range(start, end))
        if window.start:
            assert CONTEXT[window.spans[window.start, 0] : window.spans[window.end, 1]] == answer
    assert covered == {i for i, character in enumerate(CONTEXT) if character != " "}
    if not answer:
        assert all(window.start == window.end == 0 for window in windows)


def test_a_token_is_part_of_the_answer_if_one_of_its_characters_is() -> None:
    start = CONTEXT.index("Thorndel")
    question = Question("q", "T", CONTEXT, "where?", (Answer("orn", start + 2),))
    (window,) = window_questions("squad", TOKENIZER, [question], 120, 10)
    marked = CONTEXT[window.spans[window.start, 0] : window.spans[window.end, 1]]
    assert window.start
    assert "orn" in marked
    assert marked in "Thorndel"


def test_an_answer_may_begin_with_a_character_that_the_tokenizer_drops() -> None:
    context = "Ada founded \u200bThorndel\u200b in 1601."  # zero-width spaces
    question = Question("q", "T", context, "what?", (Answer("\u200bThorndel\u200b", context.index("\u200b")),))
    (window,) = window_questions("squad", TOKENIZER, [question], 120, 10)
    assert context[window.spans[window.start, 0] : window.spans[window.end, 1]] == "Thorndel"


def test_a_question_that_is_too_long_is_cut() -> None:
    (window, *_) = window_questions("squad", TOKENIZER, [_question("1601", "who " * 100)], 40, 10)
    assert window.passage.start == 20


@pytest.mark.parametrize("max_length", [-1, 0, 5])
def test_windows_without_room_are_refused(max_length: int) -> None:
    with pytest.raises(InputError, match=rf"params.yaml: squad.max_length: {max_length} is not allowed; .* least 6,"):
        next(window_questions("squad", TOKENIZER, [_question("1601")], max_length, 1))


@given(st.text(max_size=120), st.text(max_size=60), st.integers(6, 40), st.integers(1, 50))
@settings(max_examples=40, deadline=None)
def test_every_token_of_any_passage_is_in_a_window(passage: str, asked: str, max_length: int, stride: int) -> None:
    tokens = TOKENIZER.encode(passage, add_special_tokens=False)  # WordPiece's have no spaces
    windows = list(window_questions("squad", TOKENIZER, [Question("q", "", passage, asked, ())], max_length, stride))
    seen, until = [], 0
    for window in windows:
        assert len(window.ids) <= max_length
        ids = window.ids[window.passage].tolist()
        first = next(at for at in range(until, -1, -1) if tokens.ids[at : at + len(ids)] == ids)  # no gap before it
        until = max(until, first + len(ids))
        seen += window.spans[window.passage].tolist()
    assert until == len(tokens.ids)
    assert {tuple(span) for span in seen} == set(tokens.offsets)


@pytest.mark.parametrize(
    "form", [PairFormat((1,), (2, 2), (2,)), PairFormat((), (), ()), PairFormat((1,), (2,), (3,) * 9)]
)
def test_the_shortest_window_holds_a_token_of_each(monkeypatch: pytest.MonkeyPatch, form: PairFormat) -> None:
    monkeypatch.setattr(SubwordTokenizer, "pair_format", form)
    added = sum(map(len, (form.before, form.between, form.after)))
    monkeypatch.setattr(SubwordTokenizer, "num_special_tokens_to_add", lambda tokenizer, is_pair: added)
    window = next(window_questions("squad", TOKENIZER, [_question("", "who " * 50)], shortest_window(form), 1))
    assert len(window.ids) == shortest_window(form)
    assert window.asked.stop > window.asked.start
    assert window.passage.stop > window.passage.start


def test_most_drawn_windows_contain_the_answer_and_all_are_reproducible() -> None:
    """One window a question; where it holds the answer varies, so that its place tells nothing."""
    asked = [replace(_question("1601"), id=str(number)) for number in range(300)]
    windows = list(draw_windows("squad", TOKENIZER, asked, 24))
    assert [window.question for window in windows] == asked
    assert all(len(window.ids) == 24 for window in windows)
    missing = [window for window in windows if window.end == 0]
    assert 0 < len(missing) < 300 * ANYWHERE
    assert {window.question.context[slice(*_characters(window))] for window in windows if window.end} == {"1601"}
    assert len({window.start for window in windows}) > 5
    again = draw_windows("squad", TOKENIZER, asked[::-1], 24)
    assert [window.start for window in again] == [window.start for window in windows[::-1]]


def _characters(window: Window) -> tuple[int, int]:
    return int(window.spans[window.start, 0]), int(window.spans[window.end, 1])


@pytest.mark.parametrize("answer", ["", CONTEXT])
def test_a_window_is_drawn_even_if_the_answer_fits_in_none(answer: str) -> None:
    asked = [replace(_question(answer), id=str(number)) for number in range(50)]
    windows = list(draw_windows("squad", TOKENIZER, asked, 24))
    assert {(window.start, window.end) for window in windows} == {(0, 0)}
    assert len({tuple(window.ids) for window in windows}) > 5
    (whole,) = draw_windows("squad", TOKENIZER, asked[:1], 120)
    assert whole.end - whole.start == (whole.passage.stop - whole.passage.start - 1 if answer else 0)


def test_the_span_of_an_empty_passage_is_empty_with_a_finite_score() -> None:
    question = Question("q", "T", "", "who?", ())
    (window,) = window_questions("squad", TOKENIZER, [question], 24, 8)
    found = best_span(window, np.ones((len(window.ids), 2)), 30)
    assert (found.text, found.null_score) == ("", 2.0)
    assert json.loads(json.dumps(found.score, allow_nan=False)) == found.score
    assert best_over_windows([found, Span("a", 0, -1e30, 3.0), Span("b", 0, -2e30, 1.0)]) == Span("a", 0, -1e30, 1.0)
    assert np.isfinite(found.null_score - found.score)


def _window(passage: str, tokens: int | None = None) -> Window:
    """A window on the first `tokens` characters of a passage, each of them a token."""
    count = len(passage) if tokens is None else tokens
    spans = np.array([[0, 0], *([i, i + 1] for i in range(count)), [0, 0]])
    ids, place = np.zeros(count + 2, dtype=np.int32), slice(1, count + 1)
    kinds = np.zeros(count + 2, dtype=np.int8)
    return Window(Question("q", "T", passage, "?", ()), ids, spans, slice(1, 1), place, 0, 0, kinds)


@given(st.text("abÉß1 .-\u6f22\u5b57\u0645", min_size=1, max_size=12), st.integers(1, 14), st.integers(0, 10_000))
@settings(deadline=None)
def test_the_best_span_is_the_best_of_whole_words(passage: str, longest: int, seed: int) -> None:
    scores = np.random.default_rng(seed).normal(size=(len(passage) + 2, 2))
    found = best_span(_window(passage), scores, longest)
    cuts = {at.start() for at in re.finditer(r"(?<=[abÉß1])(?=[abÉß1])", passage)}
    spans = [(s, e) for s in range(len(passage)) for e in range(s, min(len(passage), s + longest))]
    spans = [(s, e) for s, e in spans if not {s, e + 1} & cuts] or spans
    start, end = max(spans, key=lambda span: scores[span[0] + 1, 0] + scores[span[1] + 1, 1])
    assert found.text == passage[start : end + 1]
    assert found.score == pytest.approx(scores[start + 1, 0] + scores[end + 1, 1])
    assert found.null_score == pytest.approx(scores[0].sum())


@pytest.mark.parametrize(
    ("passage", "tokens", "marked", "answer"),
    [
        ("by the Thessel .", 16, (11, 13), "Thessel"),  # a piece of the name
        ("non-violent", 11, (4, 10), "violent"),  # a hyphen separates words
        ("Ko\u0308nig Ada", 10, (0, 1), "Ko\u0308nig"),  # a combining accent
        ("\u5317\u4eac\u5927\u5b66", 4, (2, 3), "\u5927\u5b66"),  # a script without spaces
        ("Thessel", 4, (1, 2), "he"),  # a window within one word
    ],
)
def test_an_answer_cuts_a_word_only_where_it_must(
    passage: str, tokens: int, marked: tuple[int, int], answer: str
) -> None:
    places = np.arange(-1.0, tokens + 1)
    scores = np.stack([-abs(places - marked[0]), -abs(places - marked[1])], axis=-1)  # lower with the distance
    assert best_span(_window(passage, tokens), scores, 30).text == answer


def test_matches_are_graded_by_rarity() -> None:
    shares = word_shares(["the " * 99_000 + "town " * 99, "Ada"])
    passage = "The town of Adamant Thorndel, Thorndale, Ada! Thornby Thor"
    kinds = match_kinds("the town? Ada Thorndel", passage, shares)
    at = {
        word: kinds[passage.rindex(word)]
        for word in ("The", "town", "of", "Adamant", "Thorndel", "Thorndale", "Ada!", "Thornby", "Thor")
    }
    assert at == {
        "The": COMMON, "town": MIDDLING, "of": NONE, "Adamant": NONE, "Thorndel": RARE, "Thorndale": SAME_BEGINNING,
        "Ada!": MIDDLING, "Thornby": SAME_BEGINNING, "Thor": NONE,  # five letters are a beginning
    }  # fmt: skip
    assert len(kinds) == len(passage)
    assert kinds[passage.index(",")] == NONE


def _task(folder: Path, asked: dict[str, str], max_length: int, **settings: Any) -> ExtractiveTask:
    return ExtractiveTask(
        "squad", tiny_questions(folder, CONTEXT, asked), TOKENIZER, tiny_answers(max_length, **settings)
    )


@pytest.mark.parametrize("unanswerable", [True, False])
def test_only_a_model_trained_on_unanswerable_questions_may_abstain(tmp_path: Path, unanswerable: bool) -> None:
    asked = {"who?": "Ada Lund"} | ({"when?": ""} if unanswerable else {})
    task = _task(tmp_path, asked, 24, doc_stride=8)
    examples = task.examples("dev")
    scores = [np.zeros((task.length(example), 2)) for example in examples]
    rows = task.rows(examples, scores)
    assert [row["id"] for row in rows] == list(asked)
    assert len(examples) > len(rows)
    assert (rows[0]["null_score"] is not None) == unanswerable


def test_an_answer_that_occurs_twice_starts_where_the_model_says(tmp_path: Path) -> None:
    task = ExtractiveTask(
        "squad", tiny_questions(tmp_path, "Ada met Bob. Ada left.", {"who?": "Ada"}), TOKENIZER, tiny_answers(24)
    )
    (window,) = task.examples("dev")
    scores = np.zeros((len(window.ids), 2))
    scores[np.flatnonzero(window.spans[:, 0] == 13)] = 1.0
    (row,) = task.rows([window], [scores])
    assert (row["text"], row["start"]) == ("Ada", 13)


def test_the_loss_of_a_window_is_the_mean_of_its_two_ends(tmp_path: Path) -> None:
    """Of two windows of four tokens: each start is one of four, each end is certain."""
    task = _task(tmp_path, {"who?": "Ada Lund"}, 64)
    scores, ends = torch.zeros(2, 4, 2), torch.tensor([1, 3])
    scores[[0, 1], ends, 1] = 1e4
    loss = task.loss(scores, {"start": torch.tensor([0, 2]), "end": ends})
    assert loss.item() == pytest.approx(2 * np.log(4) / 2)


def _reader(family: str, question_match: bool) -> SpanModel:
    body = make_model("spans", tiny_config(family, tiny_tokenizer()), 0, "eager")
    return SpanModel(cast(PreTrainedModel, body), question_match).eval()


def _inputs() -> list[torch.Tensor]:
    ids = torch.randint(5, 100, (2, 12), generator=torch.Generator().manual_seed(0))
    return [
        ids,
        torch.ones_like(ids),
        (torch.arange(12) > 5).long().expand(2, -1),
        (torch.arange(12) % 3).expand(2, -1),
    ]


@pytest.mark.parametrize("family", FAMILIES)
@torch.no_grad()
def test_match_embeddings_matter_from_the_start_and_no_match_changes_nothing(family: str) -> None:
    plain, matched = _reader(family, False), _reader(family, True)
    ids, mask, segments, match = _inputs()
    scores = matched(ids, mask, segments, match)
    assert scores.shape == (2, 12, 2)
    assert not torch.allclose(scores, plain(ids, mask, segments, match), atol=0.01)
    none = torch.zeros_like(match)
    torch.testing.assert_close(matched(ids, mask, segments, none), plain(ids, mask, segments, none))


@pytest.mark.parametrize("family", FAMILIES)
def test_transformers_alone_loads_what_is_saved(family: str, tmp_path: Path) -> None:
    """Tuned weights of Llama came from files with other names, by which its class for spans finds no body."""
    language_model = make_model("language_model", tiny_config(family, tiny_tokenizer()), 0, "eager")
    language_model.save_pretrained(tmp_path / "pretrained")
    reader = SpanModel(read_model("spans", tmp_path / "pretrained", 0, "eager"))
    reader.save_pretrained(tmp_path / "tuned")
    loaded = AutoModelForQuestionAnswering.from_pretrained(tmp_path / "tuned")
    assert all(torch.equal(loaded.state_dict()[name], weight) for name, weight in reader.body.state_dict().items())


def test_the_match_is_saved_beside_the_body(tmp_path: Path) -> None:
    reader, other = _reader("modernbert", True), _reader("modernbert", True)
    assert reader.match is not None
    assert other.match is not None
    torch.nn.init.normal_(reader.match.weight)
    reader.save_pretrained(tmp_path)
    other.load_match(tmp_path)
    assert torch.equal(reader.match.weight, other.match.weight)
