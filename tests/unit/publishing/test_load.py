import json

import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from safetensors import safe_open
from safetensors.torch import load_file, save_file

from retrace.publishing.load import ALIGNMENT, align


@settings(deadline=None)
@given(st.dictionaries(st.text("ab.c", min_size=1), st.integers(0, 70), min_size=1, max_size=6))
def test_nothing_but_the_layout_changes(tmp_path_factory, sizes: dict[str, int]) -> None:
    path = tmp_path_factory.mktemp("weights") / "w.safetensors"
    kinds = (torch.float32, torch.bfloat16, torch.int64)
    weights = {name: torch.arange(size).to(kinds[size % 3]) for name, size in sizes.items()}
    save_file(weights, path, metadata={"format": "pt"})
    align(path)
    found = load_file(path)
    assert found.keys() == weights.keys()
    assert all(torch.equal(found[name], weight) for name, weight in weights.items())
    assert [found[name].dtype for name in weights] == [weight.dtype for weight in weights.values()]
    with safe_open(path, framework="pt") as file:
        assert file.metadata() == {"format": "pt"}
    once = path.read_bytes()
    start = 8 + int.from_bytes(once[:8], "little")
    assert start % ALIGNMENT == 0
    header = json.loads(once[8:start])
    for first, last in (header[name]["data_offsets"] for name in weights):
        assert (last - first) % ALIGNMENT or first % ALIGNMENT == 0
    align(path)
    assert path.read_bytes() == once
