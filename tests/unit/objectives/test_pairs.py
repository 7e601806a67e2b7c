import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from retrace.core.errors import InputError
from retrace.models.heads import read_model
from retrace.models.language_model import PairModel, make_language_model, read_language_model
from retrace.objectives.language_modelling import IGNORED, Masking
from retrace.objectives.next_sentence import PairModelling, Pairs, relation_accuracy
from retrace.tokens.blocks import find_documents
from retrace.tokens.settings import TokenizerSettings
from retrace.tokens.tokenizer import Vocabulary, save_tokenizer, token_id, train_tokenizer
from retrace.training.loop import Run, train
from retrace.training.settings import OptimizerSettings
from retrace.training.throughput import ProductOperations
from tests.tiny import tiny_config, tiny_device

BLOCK, BATCH = 24, 8


def _documents() -> list[str]:
    """Four documents of forty sentences; no two have a word in common."""
    return [" . ".join(f"{a}{b} {b}{a} {a}{a} {b}{b}" for _ in range(40)) + " ." for a, b in ("aw", "bx", "cy", "dz")]


TOKENIZER = train_tokenizer(TokenizerSettings(vocab_size=38), _documents)
VOCABULARY = Vocabulary.of(TOKENIZER)
STREAM = np.array([i for text in _documents() for i in TOKENIZER.encode(text).ids], dtype=np.uint16)
DOCUMENTS = [STREAM[first:last].tolist() for first, last in find_documents(STREAM, VOCABULARY.begin)]


def _pairs(stream: np.ndarray = STREAM, rate: float = 0.15) -> PairModelling:
    return PairModelling(stream, TOKENIZER, BLOCK, BATCH, Masking(rate), 1)


def _segments(batch: Pairs, row: int) -> tuple[list[int], list[int]]:
    """A and B as they were before masking."""
    is_real = batch.mask[row] == 1
    ids = batch.labels[row].where(batch.labels[row] != IGNORED, batch.ids[row])[is_real].tolist()
    middle = ids.index(VOCABULARY.end)
    assert (ids[0], ids[-1]) == (VOCABULARY.begin, VOCABULARY.end)
    assert batch.segments[row][is_real].tolist() == [0] * (middle + 1) + [1] * (len(ids) - middle - 1)
    return ids[1:middle], ids[middle + 1 : -1]


def _homes(part: list[int]) -> set[int]:
    """The documents in which these tokens stand in this order."""
    return {number for number, document in enumerate(DOCUMENTS) if bytes(part) in bytes(document)}  # tokens are few


def _drawn(pairs: PairModelling, block: int, epochs: int) -> list[tuple[list[int], list[int], int]]:
    """A, B and whether they are unrelated."""
    batches = [batch for epoch in range(epochs) for batch in pairs.batches(epoch)]
    assert all(batch.ids.shape[1] <= block for batch in batches)
    return [(*_segments(batch, row), int(of)) for batch in batches for row, of in enumerate(batch.unrelated)]


def test_pairs_are_related_as_labelled() -> None:
    full_stop, drawn = token_id(TOKENIZER, "."), _drawn(_pairs(), BLOCK, 20)
    for left, right, unrelated in drawn:
        assert right
        assert left[-1] == full_stop
        if unrelated:
            assert left == [full_stop] or not _homes(left) & _homes(right)
        else:
            assert _homes(left + right)
    assert np.mean([unrelated for *_, unrelated in drawn]) == pytest.approx(0.5, abs=0.1)


def test_short_pairs_have_fewer_masks_and_padding_has_none() -> None:
    short = np.array([i for text in ("aw ww . " * 6, "bx xx . " * 9) for i in TOKENIZER.encode(text).ids])
    batch = next(iter(_pairs(short, rate=0.3).batches(1)))
    masks, real = (batch.labels != IGNORED).sum(1), batch.mask.sum(1)
    assert (masks == (real * 0.3).long()).all()
    assert len(set(real.tolist())) > 1
    assert not ((batch.labels != IGNORED) & (batch.mask == 0)).any()


def _shares_are_alike(kinds: np.ndarray, shown: np.ndarray) -> bool:
    """Whether a sign is as frequent among related as among unrelated pairs, within four standard errors."""
    share, (related, unrelated) = shown.mean(), (shown[kinds == kind] for kind in (0, 1))
    error = math.sqrt(share * (1 - share) * (1 / len(related) + 1 / len(unrelated)))
    return abs(related.mean() - unrelated.mean()) <= 4 * error


def _uneven(generator: np.random.Generator) -> str:
    """A document of two to eight sentences of three to eleven words, which are letters."""
    lengths = generator.integers(3, 12, generator.integers(2, 9))
    return " ".join(" ".join(generator.choice(list("abcdefgh"), length)) + " ." for length in lengths)


@pytest.mark.parametrize("block", [24, 48, 96])
def test_neither_lengths_nor_ends_tell_which_pairs_are_related(block: int) -> None:
    generator = np.random.default_rng(1)
    texts = [_uneven(generator) for _ in range(240)]
    tokenizer = train_tokenizer(TokenizerSettings(vocab_size=14), lambda: texts)
    stream, full_stop = np.concatenate(tokenizer.encode_documents(texts)), token_id(tokenizer, ".")
    pairs = _drawn(PairModelling(stream, tokenizer, block, BATCH, Masking(0.15), 1), block, 4)
    kinds = np.array([unrelated for *_, unrelated in pairs])
    lengths = np.array([[len(left), len(right), len(left + right)] for left, right, _ in pairs])
    for size in lengths.T:
        for most in np.quantile(size, [0.1, 0.25, 0.5, 0.75, 0.9]):
            assert _shares_are_alike(kinds, size <= most)
    assert _shares_are_alike(kinds, np.array([right[-1] == full_stop for _, right, _ in pairs]))
    firsts = np.array([[*right, full_stop].index(full_stop) for _, right, _ in pairs])  # the first sentence's length
    assert all(_shares_are_alike(kinds, firsts > most) for most in (3, 5, 7, 9))
    stops = np.array([right.count(full_stop) for _, right, _ in pairs])
    assert all(_shares_are_alike(kinds, stops > most) for most in range(4))


def test_each_passage_of_another_document_may_be_drawn() -> None:
    pairs, homes = _pairs(), _pairs()._passages
    for passage, home in enumerate(homes):
        drawn = {pairs._other_passage(passage, draw) for draw in np.linspace(0, 1, 3 * len(homes), endpoint=False)}
        assert drawn == set(np.flatnonzero(homes != home).tolist())


def test_sentences_begin_after_an_end_or_anywhere_where_there_is_none() -> None:
    pairs, stop = _pairs(), token_id(TOKENIZER, ".")
    for tokens, starts in (
        ([7, stop, 8, 8, stop, 9], [2, 5]), ([7, 8, stop, 9, stop], [3]), ([7, 8, 9, stop], [1, 2, 3]), ([7, 8], [1])
    ):  # fmt: skip
        assert pairs._sentence_starts(np.array(tokens)).tolist() == starts


def test_a_stop_that_is_one_token_with_the_space_before_it_ends_a_sentence() -> None:
    tokenizer = train_tokenizer(TokenizerSettings(kind="bpe", vocab_size=5 + 256 + 1), _documents)
    stream, full_stop = np.concatenate(tokenizer.encode_documents(_documents())), token_id(tokenizer, "Ġ.")
    pairs = _drawn(PairModelling(stream, tokenizer, 48, BATCH, Masking(0.15), 1), 48, 2)
    assert {left[-1] for left, *_ in pairs} == {full_stop}


@pytest.mark.parametrize("shift", [0.0, 0.5, 0.9999])
def test_a_documents_passages_follow_one_another_within_it(shift: float) -> None:
    """Shifted by a share of what is left, up to all of it."""
    pairs, room = _pairs(), BLOCK - 3
    for number, document in enumerate(DOCUMENTS):
        passages = np.flatnonzero(pairs._passages == number)
        assert len(passages) == len(document) // room > 1
        left = len(document) % room
        first = {0.0: 0, 0.5: (left + 1) // 2, 0.9999: left}[shift]
        found = np.concatenate([pairs._tokens(int(passage), shift, 0.0) for passage in passages])
        assert found.tolist() == document[first : first + len(passages) * room]


def test_pairs_are_drawn_anew_each_epoch_and_reproducibly() -> None:
    one, again, two = (list(_pairs().batches(epoch)) for epoch in (1, 1, 2))
    assert len(one) == len(two) == _pairs().steps
    torch.testing.assert_close([vars(batch) for batch in one], [vars(batch) for batch in again], rtol=0, atol=0)
    assert [a.unrelated.tolist() for a in one] != [b.unrelated.tolist() for b in two]


def test_the_loss_is_the_sum_of_both_means() -> None:
    model = make_language_model(tiny_config("bert", TOKENIZER), 0, "eager", pairs=True).eval()
    objective = _pairs()
    batch = next(iter(objective.batches(1)))
    loss, count = objective.loss(model, batch.to(tiny_device())), objective.sizes(batch)[0]
    inputs = {"input_ids": batch.ids, "token_type_ids": batch.segments, "attention_mask": batch.mask}
    both = model.body(**inputs, labels=batch.labels, next_sentence_label=batch.unrelated)
    related = torch.nn.functional.cross_entropy(both.seq_relationship_logits, batch.unrelated)
    masks = int(BLOCK * 0.15)  # of a full pair
    expected = both.loss - related + related * masks * BATCH / count
    assert (loss / count).item() == pytest.approx(expected.item(), rel=1e-5)


def _trained(epochs: int) -> PairModel:
    model = make_language_model(tiny_config("bert", TOKENIZER), 0, "eager", pairs=True)
    assert isinstance(model, PairModel)
    optimiser = OptimizerSettings(kind="adamw", warmup_ratio=0.1, decay_start=0.5)
    train(Run("pairs", model, _pairs(), tiny_device(), optimiser, 0.003, epochs), lambda epoch, meter: None)
    return model.eval()


def test_a_model_learns_which_sentences_belong_together() -> None:
    held_out = list(_pairs().batches(0))
    before, after = (relation_accuracy(_trained(epochs), held_out, tiny_device()) for epochs in (1, 150))
    assert before < 0.75
    assert after > 0.9


def test_relations_are_predicted_without_products_with_the_vocabulary() -> None:
    model = make_language_model(tiny_config("bert", TOKENIZER), 0, "eager", pairs=True).eval()
    batch = next(iter(_pairs().batches(1)))
    with ProductOperations() as found:
        relation_accuracy(model, [batch], tiny_device())
    body: Any = model.body
    with torch.no_grad(), ProductOperations() as least:
        output = body.bert(input_ids=batch.ids, token_type_ids=batch.segments, attention_mask=batch.mask)
        body.cls.seq_relationship(output.pooler_output)
    assert found.total == least.total


def test_the_pooled_head_goes_with_the_model_into_classification(tmp_path: Path) -> None:
    model = _trained(1)
    model.body.save_pretrained(tmp_path)
    save_tokenizer(TOKENIZER, tmp_path, lowercase=True)
    weights = read_model("classifier", tmp_path, 1, "eager").state_dict()
    assert torch.equal(weights["bert.pooler.dense.weight"], model.body.state_dict()["bert.pooler.dense.weight"])
    again = read_language_model(tmp_path, 1, "eager").eval()
    ids, at = torch.arange(5, 21)[None], torch.arange(16)
    zeros, ones = torch.zeros(1, 16, dtype=torch.long), torch.ones(1, 16, dtype=torch.long)
    torch.testing.assert_close(again(ids, at), model(ids, at, None, zeros, ones)[0])
    assert torch.equal(again(ids, at), model.of_tokens(ids, at))


@pytest.mark.parametrize("family", ["modernbert", "roberta", "llama"])
def test_other_families_have_no_pairs(family: str) -> None:
    with pytest.raises(InputError, match="next_sentence: true is not allowed with family: "):
        make_language_model(tiny_config(family, TOKENIZER), 0, "eager", pairs=True)


def test_one_document_makes_no_pairs() -> None:
    with pytest.raises(InputError, match="two documents of 16 tokens or more; the text has 1"):
        _pairs(STREAM[: len(DOCUMENTS[0]) + 2])


def test_b_alone_does_not_tell_which_pairs_are_related() -> None:
    """Each sentence of a document has words of its own, so B's words show where in the document it begins and ends."""
    letters = "abcdefgh"
    texts = [" ".join(f"{letter} {letter} {letter} ." for letter in letters)] * 120
    tokenizer = train_tokenizer(TokenizerSettings(vocab_size=14), lambda: texts)
    stream = np.concatenate(tokenizer.encode_documents(texts))
    pairs = _drawn(PairModelling(stream, tokenizer, 40, BATCH, Masking(0.15), 1), 40, 12)
    kinds = np.array([unrelated for *_, unrelated in pairs])
    assert len(kinds) > 1000
    for letter in letters:
        token = token_id(tokenizer, letter)
        assert _shares_are_alike(kinds, np.array([token in right for _, right, _ in pairs]))
        assert _shares_are_alike(kinds, np.array([right[0] == token for _, right, _ in pairs]))
