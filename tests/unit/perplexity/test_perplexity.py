import math
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from numpy.typing import ArrayLike

from retrace.perplexity import measures
from retrace.perplexity.losses import sizes_of
from retrace.statistics.intervals import resample, widening
from retrace.statistics.scales import Shortfall
from retrace.tokens.tokenizer import load_tokenizer
from tests.hub.content import tokenizers
from tests.tiny import tiny_tokenizer

# Three documents: losses of 2, 3 and 10 on 1, 2 and 2 scored tokens.
THREE = measures.Losses(3.0, np.array([2.0, 3.0, 10.0]), np.array([1.0, 2.0, 2.0]))
SIZES = measures.Sizes(np.array([4, 6, 10]), np.array([2, 4, 4]), np.array([10, 20, 20]))


def _documents(nats: ArrayLike, scored: ArrayLike) -> measures.Measured:
    """Documents of two tokens per word and five bytes per token."""
    asked = np.array(scored)
    sums = np.array(nats) * asked
    return measures.Losses(float(sums.sum() / asked.sum()), sums, asked), measures.Sizes(asked, asked / 2, asked * 5)


def _interval(losses: measures.Losses, sizes: measures.Sizes, seed: int = 0) -> dict[str, float]:
    drawn = resample({"": measures.resampled(losses, sizes)}, len(losses.sums), 400, seed)[""]
    found = measures.figures_of(losses, sizes, drawn).intervals["perplexity_per_token"]
    return {end: value for end, value in found.items() if value is not None}


def test_perplexity_per_token_word_and_byte() -> None:
    sizes = measures.Sizes(np.array([10, 20]), np.array([5, 15]), np.array([60, 40]))
    found = measures.figures_of(measures.Losses(math.log(8), np.zeros(2), np.zeros(2)), sizes).to_json()
    expected = {"perplexity_per_token": 8, "perplexity_per_word": 8**1.5, "bits_per_byte": 3 * 30 / 100}
    assert found == pytest.approx(expected)


def test_headlines_are_the_perplexities_per_token_and_the_names_of_flags() -> None:
    def of(token: float | None) -> measures.PerplexityFigures:
        return measures.PerplexityFigures(perplexity_per_token=token, perplexity_per_word=9.0, bits_per_byte=1.0)

    dev = measures.SplitPerplexity(measures={"masked": of(7.5), "unigram": of(30.0)}, beats_unigram=True, flags={})
    test = measures.SplitPerplexity(measures={"masked": of(None)}, beats_unigram=None, flags={"unasked": "no token"})
    found = measures.PerplexityReport(splits={"dev": dev, "test": test}).headlines.to_json()
    splits = {"dev": {"masked": 7.5, "unigram": 30.0}, "test": {"masked": None}}
    assert found == {**splits, "flags": {"test": {"unasked": 1}}}


def test_a_vocabulary_without_an_unknown_token_leaves_nothing_out(tmp_path: Path) -> None:
    (tmp_path / "tokenizer.json").write_text(tokenizers.llama().tokenizer.to_str())
    ends = '{"bos_token": "<|begin_of_text|>", "eos_token": "<|end_of_text|>"}'
    (tmp_path / "tokenizer_config.json").write_text(ends)
    tokenizer, text = load_tokenizer(tmp_path), "the <unk> town 🙂"
    lengths, sizes = sizes_of([text], tokenizer)
    pieces = len(tokenizer.encode(text, add_special_tokens=False).ids)
    assert (lengths.tolist(), sizes.tokens.tolist()) == ([pieces + 2], [pieces])
    assert (sizes.words.tolist(), sizes.bytes.tolist()) == ([4], [len(text.encode())])


def test_what_the_unknown_token_stands_for_is_in_no_size() -> None:
    lengths, sizes = sizes_of(["the <unk> town", "the 🙂 town🙂", "🙂"], tiny_tokenizer())
    of_words = sizes_of(["the town", "the"], tiny_tokenizer())[1].tokens
    assert sizes.tokens.tolist() == [*of_words, 0]
    assert lengths.tolist() == [of_words[0] + 3, of_words[1] + 4, 3]
    assert sizes.words.tolist() == [2, 1, 0]  # a sequence of letters with a sign in it is one unknown token
    assert sizes.bytes.tolist() == [len("the  town"), len("the  "), 0]


def test_a_figure_too_large_for_a_number_is_absent_and_the_others_are_there() -> None:
    asked = np.array([300.0, 400.0])
    four, two = (measures.Losses(nats, nats * asked, asked) for nats in (4.0, 2.0))
    sizes = measures.Sizes(asked, np.ones(2), 3 * asked)
    report = measures.with_intervals({"masked": (four, sizes)}, (two, sizes), 400, 0)
    masked, unigram = report.measures["masked"], report.measures["unigram"]
    assert masked.perplexity_per_word is None  # 350 tokens of 4 nats a word
    assert masked.perplexity_per_token == pytest.approx(math.exp(4))
    assert masked.bits_per_byte == pytest.approx(4 / 3 / math.log(2))
    assert unigram.perplexity_per_word == pytest.approx(math.exp(700))
    assert unigram.intervals["perplexity_per_word"] == {"low": 1.0, "high": None}  # with two documents, 0 nats or more
    assert report.beats_unigram is False


def test_a_text_without_a_token_to_score_has_no_figures_and_a_flag() -> None:
    nothing = measures.Losses(math.nan, np.zeros(2), np.zeros(2)), measures.Sizes(np.zeros(2), np.zeros(2), np.ones(2))
    unigram = measures.unigram_losses(np.array([5, 6]), np.array([2, 1, 3]), np.array([3]), 7, (0, 1, 2, 3, 4))
    assert math.isnan(unigram.mean)
    report = measures.with_intervals({"masked": nothing}, nothing, 100, 0)
    absent = {"perplexity_per_token": None, "perplexity_per_word": None, "bits_per_byte": None}
    flags = {"nothing_scored": "no token of the text can be scored"}
    assert report.to_json() == {"masked": absent, "unigram": absent, "beats_unigram": None, "flags": flags}


def test_a_text_whose_tokens_are_often_unknown_is_flagged() -> None:
    asked = np.full(40, 10.0)
    own, other = (_documents(np.full(40, mean), asked) for mean in (2.0, 3.0))
    found = [measures.with_intervals({"masked": own}, other, 100, 0, share) for share in (0.1, 0.354)]
    said = "35.4% of the text’s tokens are unknown and not scored"
    assert [split.flags for split in found] == [{}, {"unknown_tokens": said}]
    assert all(split.beats_unigram for split in found)


def test_a_resample_is_a_ratio_of_sums_over_documents() -> None:
    found = measures.resampled(THREE, SIZES)(np.array([[1.0, 1, 1], [3, 0, 0], [0, 2, 1]]))
    assert found["perplexity_per_token"].tolist() == [15 / 5, 2, 16 / 6]
    assert found["perplexity_per_word"] == pytest.approx([3 * 20 / 10, 2 * 12 / 6, 16 / 6 * 22 / 12])
    assert found["bits_per_byte"] == pytest.approx([3 * 20 / 50, 2 * 12 / 30, 16 / 6 * 22 / 60])


def test_the_interval_is_that_of_all_resamples_there_are() -> None:
    """Of the 27 ordered resamples of three documents the extremes are one document thrice: 3 / 2 and 10 / 2 nats.

    Each has a chance of 1 in 27, above one in forty, so they are the ends.
    """
    drawn = resample({"": measures.resampled(THREE, SIZES)}, 3, 10_000, 0)[""]
    found = measures.figures_of(THREE, SIZES, drawn).intervals["perplexity_per_token"]
    wide = 4.302653 * 1.5**0.5 / 1.959964  # Student's t of two degrees of freedom, and the variance over 2 of 3
    assert found == {"low": 1.0, "high": pytest.approx(math.exp(3 + 2 * wide))}  # a loss is 0 or more


def test_intervals_hold_the_true_perplexity_in_most_samples_of_documents() -> None:
    """Tokens of a document share its difficulty, so an interval from tokens, not documents, would be far too narrow."""
    generator, held = np.random.default_rng(1), 0
    for sample in range(200):
        asked = generator.integers(20, 200, size=50).astype(float)
        found = _interval(*_documents(generator.normal(4, 0.5, size=50), asked), sample)
        held += found["low"] <= math.exp(4) <= found["high"]
    assert 0.88 <= held / 200 <= 0.98


def _report(means: np.ndarray, others: np.ndarray) -> measures.SplitPerplexity:
    asked = np.full(len(means), 10.0)
    return measures.with_intervals({"masked": _documents(means, asked)}, _documents(others, asked), 400, 0)


def test_a_model_is_better_than_word_frequencies_where_the_paired_difference_says_so() -> None:
    means = np.random.default_rng(1).normal(5, 1, size=40)
    clear = _report(means, means + 0.05)  # far less than documents differ among themselves
    masked, unigram = (of.intervals["perplexity_per_token"] for of in clear.measures.values())
    assert (masked["high"] or 0) > (unigram["low"] or 0)
    assert (clear.beats_unigram, clear.flags) == (True, {})


def test_a_model_that_is_better_by_chance_is_flagged_with_the_evidence() -> None:
    means, noise = np.full(40, 5.0), np.tile([0.5, -0.4], 20)
    found = _report(means, means + noise)
    assert (found.measures["masked"].perplexity_per_token or 0) < (found.measures["unigram"].perplexity_per_token or 0)
    assert found.beats_unigram is False
    assert found.flags.keys() == {"not_above_unigram"}
    said = "log likelihood per token -5, unigram -5.05; difference 0.05 (95% interval -0."
    assert str(found.flags["not_above_unigram"]).startswith(said)


def test_one_document_has_figures_and_no_interval() -> None:
    found = _report(np.array([2.0]), np.array([3.0]))
    assert (found.beats_unigram, found.flags) == (None, {})  # nothing tells how documents differ
    assert found.measures["masked"].to_json().keys() == {"perplexity_per_token", "perplexity_per_word", "bits_per_byte"}


def test_on_one_document_a_model_that_is_not_better_than_word_frequencies_is_flagged() -> None:
    for loss in (3.0, 10.8):
        found = _report(np.array([loss]), np.array([3.0]))
        said = f"log likelihood per token -{loss:g}, unigram -3; fewer than two documents are scored"
        assert (found.beats_unigram, found.flags) == (False, {"not_above_unigram": said})


@pytest.mark.parametrize("chunk", [2, measures.CHUNK])  # tokens counted at a time
def test_the_unigram_model_by_hand(monkeypatch: pytest.MonkeyPatch, chunk: int) -> None:
    monkeypatch.setattr(measures, "CHUNK", chunk)
    train, held_out = np.array([2, 2, 3, 0]), np.array([2, 3, 0, 2, 0])  # 0 and 1 are special
    p2, p3 = 3 / 6, 2 / 6  # one added to each of three counts: 2, 1 and 0
    found = measures.unigram_losses(train, held_out, np.array([3, 2]), 5, (0, 1))
    assert found.mean == pytest.approx(-(2 * math.log(p2) + math.log(p3)) / 3)
    assert found.sums == pytest.approx([-math.log(p2) - math.log(p3), -math.log(p2)])
    assert found.scored.tolist() == [2, 1]


def test_documents_without_a_scored_token_make_no_interval_narrower() -> None:
    """Five with tokens, and as many without: the widening is that of five."""
    losses, sizes = _documents([2.0, 2.5, 3.0, 3.5, 4.0] + [0.0] * 5, [10.0] * 5 + [0.0] * 5)
    drawn = {"perplexity_per_token": np.linspace(2.9, 3.1, 401)}  # nats
    found = measures.figures_of(losses, sizes, drawn).intervals["perplexity_per_token"]
    reach = 0.095 * widening(5)
    assert found == pytest.approx({"low": math.exp(3 - reach), "high": math.exp(3 + reach)})


def test_few_documents_show_less_of_a_difference_than_their_resamples() -> None:
    """The model is better in each of three documents, which is too few: Student's t has two degrees of freedom."""
    own, unigram = (_documents(nats, [10.0] * 3) for nats in ([2.0, 3.0, 4.0], [2.1, 3.5, 4.9]))
    found = measures.with_intervals({"masked": own}, unigram, 2000, 0)
    assert found.beats_unigram is False
    short = found.flags["not_above_unigram"]
    assert isinstance(short, Shortfall)
    assert (short.low, short.high) == (
        pytest.approx(0.5 - 0.4 * widening(3), abs=0.02),
        pytest.approx(0.5 + 0.4 * widening(3), abs=0.02),
    )
    many = [_documents(nats * 20, [10.0] * 60) for nats in ([2.0, 3.0, 4.0], [2.1, 3.5, 4.9])]
    assert measures.with_intervals({"masked": many[0]}, many[1], 2000, 0).beats_unigram


def _measured(sums: list[float], scored: list[float], words: list[int]) -> measures.Measured:
    sizes = measures.Sizes(np.array([4, 6]), np.array(words), np.array([20, 33]))
    return measures.Losses(math.nan, np.array(sums), np.array(scored)), sizes


@pytest.mark.usefixtures("here")
def test_what_was_measured_of_each_document_is_read_back_with_its_mean() -> None:
    some, none = _measured([2.0, 7.5], [1.0, 2.0], [2, 3]), _measured([0.0, 0.0], [0.0, 0.0], [1, 1])
    measures.DOCUMENTS.parent.mkdir()
    measures.write_documents({"dev": {"masked": some, "unigram": none}, "test": {"masked": none}})
    table = pd.read_parquet(measures.DOCUMENTS)
    assert list(table) == ["split", "measure", "loss", "scored", "tokens", "words", "bytes"]
    assert table.index.tolist() == [*range(6)]
    found = measures.read_documents(measures.DOCUMENTS.read_bytes())
    assert list(found) == [("dev", "masked"), ("dev", "unigram"), ("test", "masked")]
    losses, sizes = found["dev", "masked"]
    assert losses.mean == 9.5 / 3  # nats on three tokens
    assert (losses.sums.tolist(), losses.scored.tolist()) == ([2.0, 7.5], [1.0, 2.0])
    assert [of.tolist() for of in (sizes.tokens, sizes.words, sizes.bytes)] == [[4, 6], [2, 3], [20, 33]]
    assert math.isnan(found["dev", "unigram"][0].mean)


def test_documents_are_the_same_where_all_their_sizes_are() -> None:
    one = _measured([2.0, 7.0], [1.0, 2.0], [2, 3])
    assert measures.are_same_documents(one, _measured([1.0, 1.0], [9.0, 9.0], [2, 3]))
    for size in ("tokens", "words", "bytes"):
        assert not measures.are_same_documents(one, (one[0], replace(one[1], **{size: np.array([4, 7])})))
