import math
import re
from pathlib import Path

import numpy as np
import pytest
import torch

from retrace.core.errors import InputError
from retrace.core.files import read_json
from retrace.core.paths import PRETRAINED, TOKENS
from retrace.core.paths import TEXT as RUNNING
from retrace.datasets.text import PARTS, read_documents, text_path
from retrace.models.language_model import LanguageModel, make_language_model
from retrace.objectives.language_modelling import mask_id
from retrace.perplexity.measures import PERPLEXITY_DETAILS, Measured, PerplexityFigures, figures_of
from retrace.perplexity.settings import PerplexityParams
from retrace.tokens.blocks import write_stream
from retrace.tokens.settings import TokenizerSettings
from retrace.tokens.tokenizer import SubwordTokenizer, Vocabulary, train_tokenizer
from stages import perplexity_eval
from stages.perplexity_eval import HeldOutText, held_out, measure
from tests.tiny import TEXT, tiny_config, tiny_device, tiny_pretrained, tiny_tokenizer
from tests.toy import copy_settings


def test_a_stream_goes_with_its_text(tmp_path: Path) -> None:
    tokenizer, text, tokens = tiny_tokenizer(), tmp_path / "wiki.valid.tokens", tmp_path / "valid.npy"
    text.write_text(" = Ada = \nthe guild of weavers\n = Bob = \nthe river")
    lengths = [len(tokenizer.encode(of).ids) for of in ("= Ada =\nthe guild of weavers", "= Bob =\nthe river")]
    np.save(tokens, np.zeros(sum(lengths), np.uint16))
    found = held_out(tokens, text, tokenizer)
    assert (len(found.stream), found.lengths.tolist()) == (sum(lengths), lengths)
    assert found.sizes.tokens.tolist() == [7, 5]  # the vocabulary lacks the signs of headings
    assert found.unknown_share == 4 / 16
    text.write_text(f"{text.read_text()}\nand more")
    with pytest.raises(InputError, match=r"valid\.npy: these are not the tokens of .*valid\.tokens; run tokenize"):
        held_out(tokens, text, tokenizer)


# Perplexity by three ways: from the model's own scores by hand, by the definitions of EleutherAI's
# lm-evaluation-harness (exp(-Σ log p / words), words being what white space separates; -Σ log p / bytes / ln 2), and as
# reported. What is spelt as a special token is text; a sign that the vocabulary lacks is in no sum and no size.
TEXTS = {
    "short": ["the town", "ale", "the river was"],
    "long": [" ".join(TEXT[:3]), " ".join(TEXT[:6])],
    "spaceless": ["theriverofthetown" * 2, "weavers" * 5],
    "bracketed": ["the [CLS] river of [SEP]", "[MASK] was the [PAD] town", "<s> the ale </s>"],
    "unknown": ["the <unk> of the town", "ale 🙂 the river"],
}
KNOWN = [text for name, texts in TEXTS.items() if name != "unknown" for text in texts]


def _tokenizer() -> SubwordTokenizer:
    return train_tokenizer(TokenizerSettings(vocab_size=150), lambda: [*TEXT, *KNOWN * 2])


def _harness(texts: list[str], nats: float) -> dict[str, float]:
    texts = [text.replace("<unk>", "").replace("🙂", "") for text in texts]
    words = sum(len(re.split(r"\s+", text.strip())) for text in texts)
    bits = nats / sum(len(text.encode()) for text in texts) / math.log(2)
    return {"perplexity_per_word": math.exp(nats / words), "bits_per_byte": bits}


def _written(texts: list[str], folder: Path) -> HeldOutText:
    """Documents of one line each, and their tokens."""
    tokenizer, path, tokens = _tokenizer(), folder / "wiki.valid.tokens", folder / "valid.npy"
    path.write_text("\n\n".join(texts), encoding="utf-8")
    write_stream(tokens, tokenizer, [read_documents(path)])
    return held_out(tokens, path, tokenizer)


def _measured(text: HeldOutText, family: str, block: int, **perplexity: float) -> dict[str, Measured]:
    """What the stage measures of a tiny model with random weights."""
    tokenizer = _tokenizer()
    params = PerplexityParams.read({
        "precision": "fp32", "perplexity": perplexity, "pretrain": {"block_size": block},
        "metrics": {"bootstrap_samples": 100, "seed": 0},
    })  # fmt: skip
    return measure(_model_of(family, tokenizer), text, tokenizer, params, tiny_device())


def _reported(texts: list[str], family: str, tmp_path: Path) -> PerplexityFigures:
    """The figures in one window, or passage by passage."""
    found = _measured(_written(texts, tmp_path), family, 512, pseudo_passages=99, stride=512)
    return figures_of(*found["causal" if family == "llama" else "pseudo"])


def _model_of(family: str, tokenizer: SubwordTokenizer) -> LanguageModel:
    return make_language_model(tiny_config(family, tokenizer, max_positions=512), 0, "eager").eval()


@torch.no_grad()
def _causal_nats(texts: list[str]) -> float:
    """−log p of each ordinary token after all those before it."""
    tokenizer = _tokenizer()
    ids = torch.tensor([[token for text in tokenizer.encode_documents(texts) for token in text]])
    shares = _model_of("llama", tokenizer).body(input_ids=ids).logits[0].double().log_softmax(-1)
    asked = [at for at in range(1, ids.shape[1]) if ids[0, at] not in Vocabulary.of(tokenizer).special]
    return -sum(shares[at - 1, ids[0, at]].item() for at in asked)


@torch.no_grad()
def _pseudo_nats(texts: list[str]) -> float:
    """−log p of each ordinary token where it alone is masked."""
    tokenizer, nats = _tokenizer(), 0.0
    vocabulary, model = Vocabulary.of(tokenizer), _model_of("bert", tokenizer)
    for text in tokenizer.encode_documents(texts):
        for at in (at for at, token in enumerate(text) if token not in vocabulary.special):
            ids = torch.tensor([text])
            ids[0, at] = mask_id(vocabulary)
            nats -= model.body(input_ids=ids).logits[0, at].double().log_softmax(-1)[text[at]].item()
    return nats


@pytest.mark.parametrize("texts", TEXTS.values(), ids=TEXTS)
def test_perplexity_by_hand_by_the_harness_definitions_and_as_reported(texts: list[str], tmp_path: Path) -> None:
    pseudo = [text for text in texts if "<unk>" not in text]  # such passages are skipped
    by_hand = {"llama": _harness(texts, _causal_nats(texts)), "bert": _harness(pseudo, _pseudo_nats(pseudo))}
    for family, expected in by_hand.items():
        found = _reported(texts, family, tmp_path)
        assert {unit: getattr(found, unit) for unit in expected} == pytest.approx(expected, rel=1e-4)


def test_masks_passages_and_windows_are_those_of_the_settings(tmp_path: Path) -> None:
    """In blocks of 16 tokens. Nothing comes before the first token of a window that overlaps with no other."""
    text = _written([*TEXT[:3], " ".join(TEXT[:6])], tmp_path)
    ordinary = ~np.isin(text.stream, Vocabulary.of(_tokenizer()).special)
    for rate, masked in ((0.25, 4), (0.5, 8)):
        found = _measured(text, "bert", 16, mask_rate=rate)["masked"][0]
        assert found.scored.sum() == masked * (len(ordinary) // 16)
    drawn = [_measured(text, "bert", 16, pseudo_passages=2, seed=seed)["pseudo"][0] for seed in range(6)]
    assert {losses.documents for losses in drawn} == {2}
    assert len({losses.mean for losses in drawn}) > 1
    first = ordinary[: len(ordinary) - 15 : 16].sum()
    assert first > 0
    for stride, unread in ((4, 0), (16, first), (64, first)):  # a stride is at most a block
        found = _measured(text, "llama", 16, stride=stride)["causal"][0]
        assert found.scored.sum() == ordinary.sum() - unread


def test_each_split_has_its_own_figures_beside_those_of_word_counts_in_training(here: Path) -> None:
    """With one added to each count."""
    project, tokenizer = copy_settings(here), tiny_tokenizer()
    passages = {"perplexity.pseudo_passages": 2, "metrics.bootstrap_samples": 100}
    project.set_all({**passages, "precision": "fp32", "pretrain.block_size": 32})
    tiny_pretrained(PRETRAINED)
    streams, vocabulary = {}, Vocabulary.of(tokenizer)
    TOKENS.mkdir(parents=True)
    RUNNING.mkdir(parents=True)
    for number, part in enumerate(PARTS):
        path = text_path(RUNNING, part)
        path.write_text("\n\n".join(TEXT[number : number + 2] * 3))
        write_stream(TOKENS / f"{part}.npy", tokenizer, [read_documents(path)])
        stream = np.load(TOKENS / f"{part}.npy")
        streams[part] = stream[~np.isin(stream, vocabulary.special)]
    perplexity_eval.main()
    splits = read_json(PERPLEXITY_DETAILS)
    ordinary = vocabulary.size - len(vocabulary.special)
    counts = np.bincount(streams["train"], minlength=vocabulary.size) + 1
    for part in ("valid", "test"):
        expected = math.exp(-np.log(counts[streams[part]] / (len(streams["train"]) + ordinary)).mean())
        assert splits[part]["unigram"]["perplexity_per_token"] == pytest.approx(expected)
    for name in ("masked", "pseudo"):
        assert len({splits[part][name]["perplexity_per_token"] for part in ("valid", "test")}) == 2
