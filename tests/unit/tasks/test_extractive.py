import re
from dataclasses import replace
from pathlib import Path
from unicodedata import category, normalize

import numpy as np
import pytest
import torch
from hypothesis import example, given, settings
from hypothesis import strategies as st
from transformers import AutoModelForQuestionAnswering

from retrace.core.errors import InputError
from retrace.datasets.squad import Answer, Question
from retrace.models.heads import make_model, read_model
from retrace.tasks.question_answering import extractive
from retrace.tasks.question_answering.extractive import ExtractiveTask, Span, SpanModel, best_over_windows, best_span
from retrace.tasks.question_answering.windows import ANYWHERE, Window, draw_windows, shortest_window, window_questions
from retrace.tokens.settings import TokenizerSettings
from retrace.tokens.tokenizer import PairFormat, SubwordTokenizer, train_tokenizer
from tests.tiny import FAMILIES, tiny_answers, tiny_config, tiny_questions, tiny_tokenizer

CONTEXT = "the guild of weavers was founded by Ada Lund in the year 1601 , nobody doubts . the river was Thorndel ."
TOKENIZER = tiny_tokenizer()
ENDS = (TOKENIZER.token_to_id("[CLS]"), TOKENIZER.token_to_id("[SEP]"))


def _question(answer: str, text: str = "who founded the guild?", context: str = CONTEXT) -> Question:
    return Question("q", context, text, (Answer(answer, context.index(answer)),) if answer else ())


def _marked(window: Window) -> str:
    return window.question.context[window.spans[window.start, 0] : window.spans[window.end, 1]]


@given(st.integers(20, 60), st.integers(1, 60), st.sampled_from(["Ada Lund", "1601", "Thorndel", "the guild", ""]))
@settings(max_examples=60)
def test_the_answer_is_marked_in_windows_that_hold_it(max_length: int, stride: int, answer: str) -> None:
    for window in window_questions("squad", TOKENIZER, [_question(answer)], max_length, stride):
        spans, at = window.spans[window.passage], CONTEXT.index(answer)
        holds = spans[0, 0] <= at and at + len(answer) <= spans[-1, 1]
        assert _marked(window) == (answer if holds else "")


@pytest.mark.parametrize(
    ("context", "answer", "marked"),
    [
        (CONTEXT, "orn", "Thornde"),  # a token, and the next one is l
        ("Ada founded \u200bThorndel\u200b in 1601.", "\u200bThorndel\u200b", "Thorndel"),  # zero-width spaces
    ],
)
def test_a_token_is_part_of_the_answer_if_one_of_its_characters_is(context: str, answer: str, marked: str) -> None:
    """The tokenizer may drop other characters of the answer."""
    (window,) = window_questions("squad", TOKENIZER, [_question(answer, context=context)], 120, 10)
    assert _marked(window) == marked


@pytest.mark.parametrize(
    ("context", "answer"),
    [
        ("vu au cafe\u0301 de la cite\u0301", "cafe\u0301"),
        ("राम के घर में हैं", "में"),
        ("ذَهَبَ الوَلَدُ", "ذَهَبَ"),
        (normalize("NFD", "도시 서울 은"), normalize("NFD", "서울")),
    ],
)
@pytest.mark.parametrize("kind", ["wordpiece", "bpe"])
def test_marks_that_the_tokenizer_drops_are_part_of_the_answer(kind: str, context: str, answer: str) -> None:
    """WordPiece drops accents and vowel signs, BPE composes accents and Korean letters; the surest answer is whole."""
    settings = {"kind": kind, "lowercase": kind == "wordpiece"}
    with pytest.raises(InputError, match="expected at most") as most:
        train_tokenizer(TokenizerSettings(**settings, vocab_size=9999), lambda: [context])
    size = int(str(most.value).rpartition(" ")[2])
    tokenizer = train_tokenizer(TokenizerSettings(**settings, vocab_size=size), lambda: [context])
    (window,) = window_questions("squad", tokenizer, [_question(answer, context=context)], 200, 10)
    scores = np.full((len(window.ids), 2), -10.0)
    scores[window.start, 0] = scores[window.end, 1] = 10.0
    assert best_span(window, scores, 40).text == answer


def test_a_question_that_is_too_long_is_cut() -> None:
    (window, *_) = window_questions("squad", TOKENIZER, [_question("1601", "who " * 100)], 40, 10)
    assert window.passage.start == 20


@pytest.mark.parametrize("max_length", [-1, 0, 5])
def test_windows_without_room_are_refused(max_length: int) -> None:
    with pytest.raises(InputError, match=rf"params.yaml: squad.max_length: {max_length} is not allowed; .* least 6,"):
        next(window_questions("squad", TOKENIZER, [_question("1601")], max_length, 1))


@given(st.text(max_size=120), st.text(max_size=60), st.integers(6, 40), st.integers(1, 50))
@settings(max_examples=40)
@example("0\u0941", "", 6, 1)  # a vowel sign, which the tokenizer drops
def test_every_token_of_any_passage_is_in_a_window(passage: str, asked: str, max_length: int, stride: int) -> None:
    tokens = TOKENIZER.encode(passage, add_special_tokens=False)  # WordPiece's have no spaces
    windows = list(window_questions("squad", TOKENIZER, [Question("q", passage, asked, ())], max_length, stride))
    seen, until = [], 0
    for window in windows:
        assert len(window.ids) <= max_length
        assert (window.ids[0], window.ids[-1]) == ENDS
        assert window.segments.tolist() == [0] * window.passage.start + [1] * (len(window.ids) - window.passage.start)
        ids = window.ids[window.passage].tolist()
        first = next(at for at in range(until, -1, -1) if tokens.ids[at : at + len(ids)] == ids)  # no gap before it
        until = max(until, first + len(ids))
        seen += window.spans[window.passage].tolist()
    assert until == len(tokens.ids)
    ends = dict(tokens.offsets)
    assert {start for start, _ in seen} == ends.keys()
    dropped = [(end - ends[start], passage[ends[start] : end]) for start, end in seen]  # marks that no token has
    assert all(more == len(marks) and all(category(mark).startswith("M") for mark in marks) for more, marks in dropped)


@pytest.mark.parametrize(
    "form", [PairFormat((1,), (2, 2), (2,)), PairFormat((), (), ()), PairFormat((1,), (2,), (3,) * 9)]
)
def test_the_shortest_window_holds_a_token_of_each(monkeypatch: pytest.MonkeyPatch, form: PairFormat) -> None:
    monkeypatch.setattr(SubwordTokenizer, "pair_format", form)
    added = sum(map(len, (form.before, form.between, form.after)))
    monkeypatch.setattr(SubwordTokenizer, "num_special_tokens_to_add", lambda tokenizer, is_pair: added)
    window = next(window_questions("squad", TOKENIZER, [_question("", "who " * 50)], shortest_window(form), 1))
    assert len(window.ids) == shortest_window(form)
    assert all(part.stop > part.start for part in (window.asked, window.passage))


def test_most_drawn_windows_contain_the_answer_and_all_are_reproducible() -> None:
    """One window a question; where it holds the answer varies, so that its place tells nothing."""
    asked = [replace(_question("1601"), id=str(number)) for number in range(300)]
    windows = list(draw_windows("squad", TOKENIZER, asked, 24))
    assert [window.question for window in windows] == asked
    assert all(len(window.ids) == 24 for window in windows)
    missing = [window for window in windows if window.end == 0]
    assert 0 < len(missing) < 300 * ANYWHERE
    assert {_marked(window) for window in windows if window.end} == {"1601"}
    assert len({window.start for window in windows}) > 5
    again = draw_windows("squad", TOKENIZER, asked[::-1], 24)
    assert [window.start for window in again] == [window.start for window in windows[::-1]]


@pytest.mark.parametrize("answer", ["", CONTEXT])
def test_a_window_is_drawn_even_if_the_answer_fits_in_none(answer: str) -> None:
    asked = [replace(_question(answer), id=str(number)) for number in range(50)]
    windows = list(draw_windows("squad", TOKENIZER, asked, 24))
    assert {(window.start, window.end) for window in windows} == {(0, 0)}
    assert len({tuple(window.ids) for window in windows}) > 5
    (whole,) = draw_windows("squad", TOKENIZER, asked[:1], 120)
    assert whole.end - whole.start == (whole.passage.stop - whole.passage.start - 1 if answer else 0)


def test_the_span_of_an_empty_passage_is_empty_with_a_finite_score() -> None:
    (window,) = window_questions("squad", TOKENIZER, [_question("", context="")], 24, 8)
    found = best_span(window, np.ones((len(window.ids), 2)), 30)
    assert (found.text, found.null_score) == ("", 2.0)
    assert best_over_windows([found, Span("a", 0, -1e30, 3.0), Span("b", 0, -2e30, 1.0)]) == Span("a", 0, -1e30, 1.0)
    assert np.isfinite(found.null_score - found.score)


def _window(passage: str, tokens: int) -> Window:
    """A window on the first `tokens` characters of a passage, each of them a token."""
    spans = np.array([[0, 0], *([i, i + 1] for i in range(tokens)), [0, 0]])
    ids, kinds = np.zeros(tokens + 2, dtype=np.int32), np.zeros(tokens + 2, dtype=np.int8)
    return Window(_question("", context=passage), ids, spans, slice(1, 1), slice(1, tokens + 1), 0, 0, kinds)


SIGNS = "abÉß1\u0308 .-\u6f22\u5b57\u0645"  # with a combining accent, and of scripts without cases


@given(st.text(SIGNS, min_size=1, max_size=12), st.integers(1, 12), st.integers(1, 14), st.integers(0, 10_000))
def test_the_best_span_is_the_best_of_whole_words(passage: str, tokens: int, longest: int, seed: int) -> None:
    """A word is cut only where no other span is possible, as in a window within one word. Spaces around are cut off."""
    tokens = min(tokens, len(passage))
    scores = np.random.default_rng(seed).normal(size=(tokens + 2, 2))
    found = best_span(_window(passage, tokens), scores, longest)
    cuts = {at.start() for at in re.finditer(r"(?<=[abÉß1\u0308])(?=[abÉß1\u0308])", passage)}
    spans = [(s, e) for s in range(tokens) for e in range(s, min(tokens, s + longest))]
    spans = [(s, e) for s, e in spans if not {s, e + 1} & cuts] or spans
    start, end = max(spans, key=lambda span: scores[span[0] + 1, 0] + scores[span[1] + 1, 1])
    assert found.text == passage[start : end + 1].strip() == passage[found.start :][: len(found.text)]
    assert found.score == pytest.approx(scores[start + 1, 0] + scores[end + 1, 1])
    assert found.null_score == pytest.approx(scores[0].sum())


def test_a_passage_of_several_questions_counts_once() -> None:
    assert extractive.word_shares(["a b", "a b", "a"]) == {"a": pytest.approx(2 / 3), "b": pytest.approx(1 / 3)}


def test_a_word_may_follow_an_emoji_without_a_space() -> None:
    """This one ends in a variation selector, which Unicode puts in the category of accents."""
    window = _window("\u2764\ufe0flove it", 9)
    scores = np.full((11, 2), -10.0)
    scores[3, 0] = scores[6, 1] = 10.0
    assert best_span(window, scores, 9) == Span("love", 2, 20.0, -20.0)


def test_matches_are_graded_by_rarity() -> None:
    none, common, middling, rare, same_beginning = range(5)
    shares = extractive.word_shares(["the " * 99_000 + "town " * 99, "Ada"])
    passage = "The town of Adamant Thorndel, Thorndale, Ada! Thornby Thor"
    kinds = extractive.match_kinds("the town? Ada Thorndel", passage, shares)
    expected = {
        "The": common, "town": middling, "of": none, "Adamant": none, "Thorndel": rare, "Thorndale": same_beginning,
        "Ada!": middling, "Thornby": same_beginning, "Thor": none, ",": none,  # five letters are a beginning
    }  # fmt: skip
    assert {word: kinds[passage.rindex(word)] for word in expected} == expected
    assert len(kinds) == len(passage)


def test_words_match_with_all_of_their_marks() -> None:
    """Python's regular expressions take a vowel sign for the end of a word."""
    found = extractive.match_kinds("दिल्ली cafe\u0301?", "दादा लेकिन दिल्ली café", {})
    assert found.tolist() == [0] * 11 + [3] * 6 + [0] + [3] * 4


def test_white_space_before_a_word_of_the_question_is_no_match(tmp_path: Path) -> None:
    """Each byte is a token, one of them the line break."""
    tokenizer = train_tokenizer(TokenizerSettings(kind="bpe", vocab_size=261), lambda: ["a b"])
    source = tiny_questions(tmp_path, "it\nran", {"ran?": "it"})
    (window,) = ExtractiveTask(source, tokenizer, tiny_answers(40, question_match=True)).examples("dev")
    assert window.match[window.passage].tolist() == [extractive.NONE] * 4 + [extractive.COMMON] * 3  # a space is first


def _task(folder: Path, asked: dict[str, str], max_length: int, context: str = CONTEXT) -> ExtractiveTask:
    source, reading = tiny_questions(folder, context, asked), tiny_answers(max_length, doc_stride=8)
    return ExtractiveTask(source, TOKENIZER, reading)


def test_training_draws_a_short_window_a_question_and_held_out_questions_have_all(tmp_path: Path) -> None:
    source = tiny_questions(tmp_path, CONTEXT, {"who?": "Ada Lund", "when?": "1601"})
    reading = tiny_answers(24, doc_stride=8, train_length=20)
    train, dev = (ExtractiveTask(source, TOKENIZER, reading).examples(part) for part in ("train", "dev"))
    assert [(window.question.id, len(window.ids)) for window in train] == [("who?", 20), ("when?", 20)]
    seen = {text: {tuple(span) for window in dev if window.question.id == text for span in window.spans.tolist()}
            for text in ("who?", "when?")}  # fmt: skip
    whole = {*TOKENIZER.encode(CONTEXT, add_special_tokens=False).offsets, (0, 0)}
    assert seen == {"who?": whole, "when?": whole}


@pytest.mark.parametrize("unanswerable", [True, False])
def test_only_a_model_trained_on_unanswerable_questions_may_abstain(tmp_path: Path, unanswerable: bool) -> None:
    asked = {"who?": "Ada Lund"} | ({"when?": ""} if unanswerable else {})
    task = _task(tmp_path, asked, 24)
    examples = task.examples("dev")
    rows = task.rows(examples, [np.zeros((task.length(example), 2)) for example in examples])
    assert [row["id"] for row in rows] == list(asked)
    assert len(examples) > len(rows)
    assert (rows[0]["null_score"] is not None) == unanswerable


def test_no_answer_has_more_tokens_than_the_settings_allow(tmp_path: Path) -> None:
    reading = tiny_answers(120, max_answer_length=2)
    task = ExtractiveTask(tiny_questions(tmp_path, CONTEXT, {"who?": "Ada Lund"}), TOKENIZER, reading)
    (window,) = task.examples("dev")
    scores = np.zeros((len(window.ids), 2))
    scores[window.passage.start, 0] = scores[window.passage.stop - 1, 1] = 5.0  # from the first to the last
    (row,) = task.rows([window], [scores])
    assert 0 < len(TOKENIZER.encode(row["text"], add_special_tokens=False).ids) <= 2


def test_the_answer_is_the_best_of_all_windows_which_are_a_stride_apart(tmp_path: Path) -> None:
    task = _task(tmp_path, {"which river?": "Thorndel"}, 24)
    windows, tokens = task.examples("dev"), TOKENIZER.encode(CONTEXT, add_special_tokens=False).offsets
    firsts = [tokens.index(tuple(window.spans[window.passage.start].tolist())) for window in windows]
    assert firsts == [8 * number for number in range(len(windows))]
    scores, last = [np.zeros((len(window.ids), 2)) for window in windows], windows[-1]
    scores[-1][last.start, 0] = scores[-1][last.end, 1] = 5.0
    (row,) = task.rows(windows, scores)
    assert (row["text"], row["score"]) == ("Thorndel", 10.0)


def test_an_answer_that_occurs_twice_starts_where_the_model_says(tmp_path: Path) -> None:
    task = _task(tmp_path, {"who?": "Ada"}, 24, "Ada met Bob. Ada left.")
    (window,) = task.examples("dev")
    scores = np.zeros((len(window.ids), 2))
    scores[np.flatnonzero(window.spans[:, 0] == 13)] = 1.0
    (row,) = task.rows([window], [scores])
    assert (row["text"], row["start"]) == ("Ada", 13)


def test_the_loss_of_a_window_is_the_mean_of_its_two_ends(tmp_path: Path) -> None:
    """Two windows of four tokens: each start is equally likely, each end is certain."""
    task = _task(tmp_path, {"who?": "Ada Lund"}, 64)
    scores, ends = torch.zeros(2, 4, 2), torch.tensor([1, 3])
    scores[[0, 1], ends, 1] = 1e4
    loss = task.loss(scores, {"start": torch.tensor([0, 2]), "end": ends})
    assert loss.item() == pytest.approx(2 * np.log(4) / 2)


@pytest.mark.parametrize("family", FAMILIES)
@torch.no_grad()
def test_match_embeddings_matter_from_the_start_and_no_match_changes_nothing(family: str) -> None:
    body = make_model("spans", tiny_config(family, TOKENIZER), 0, "eager").eval()
    plain, matched = SpanModel(body), SpanModel(body, question_match=True)
    ids, places = torch.randint(5, 100, (2, 12), generator=torch.Generator().manual_seed(0)), torch.arange(12)
    given, none = (ids, torch.ones_like(ids), (places > 5).long().expand(2, -1)), torch.zeros_like(ids)
    scores = plain(*given, none)
    assert scores.shape == (2, 12, 2)
    assert not torch.allclose(matched(*given, (places % 3).expand(2, -1)), scores, atol=0.01)
    torch.testing.assert_close(matched(*given, none), scores)


@pytest.mark.parametrize("family", FAMILIES)
def test_transformers_alone_loads_what_is_saved(family: str, tmp_path: Path) -> None:
    """Llama's class for spans names the body differently: saved under other names, it would not be found."""
    make_model("language_model", tiny_config(family, TOKENIZER), 0, "eager").save_pretrained(tmp_path)
    reader = SpanModel(read_model("spans", tmp_path, 0, "eager"))
    reader.save_pretrained(tmp_path, reader.state_dict())
    loaded = AutoModelForQuestionAnswering.from_pretrained(tmp_path).state_dict()
    assert all(torch.equal(loaded[name], weight) for name, weight in reader.body.state_dict().items())
