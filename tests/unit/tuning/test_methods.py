from pathlib import Path

import torch

from stages.tuning import full, scratch
from tests.tiny import tiny_pretrained


def test_full_starts_from_the_pretrained_body_and_scratch_does_not(tmp_path: Path) -> None:
    folder = tiny_pretrained(tmp_path)
    pretrained, random = (m.start("classifier", folder, 1, "eager").state_dict() for m in (full, scratch))
    saved = full.start("language_model", folder, 5, "eager").state_dict()
    name = "model.layers.0.attn.Wqkv.weight"
    assert torch.equal(pretrained[name], saved[name])
    assert not torch.equal(random[name], saved[name])
    assert pretrained.keys() == random.keys()


def test_scratch_depends_on_the_seed_alone(tmp_path: Path) -> None:
    folder = tiny_pretrained(tmp_path)
    first, again, other = (scratch.start("spans", folder, seed, "eager").state_dict() for seed in (1, 1, 2))
    name = "model.layers.0.attn.Wqkv.weight"
    assert torch.equal(first[name], again[name])
    assert not torch.equal(first[name], other[name])
