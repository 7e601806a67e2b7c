from pathlib import Path
from typing import cast

import pytest
import torch
from transformers import AutoModelForQuestionAnswering, PreTrainedModel

from retrace.models.heads import make_model, read_model
from retrace.tasks.question_answering.extractive import SpanModel
from tests.tiny import FAMILIES, tiny_config, tiny_tokenizer


def _reader(family: str, kinds: int) -> SpanModel:
    body = make_model("spans", tiny_config(family, tiny_tokenizer()), 0, "eager")
    return SpanModel(cast(PreTrainedModel, body), kinds).eval()


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
def test_matches_are_seen_from_the_start_and_no_match_changes_nothing(family: str) -> None:
    plain, matched = _reader(family, 0), _reader(family, 3)
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
    reader, other = _reader("modernbert", 3), _reader("modernbert", 3)
    assert reader.match is not None
    assert other.match is not None
    torch.nn.init.normal_(reader.match.weight)
    reader.save_pretrained(tmp_path)
    other.load_match(tmp_path)
    assert torch.equal(reader.match.weight, other.match.weight)
