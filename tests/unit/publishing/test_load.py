import json
from pathlib import Path

import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from safetensors import safe_open
from safetensors.torch import load_file, save_file

from retrace.publishing.load import ALIGNMENT, align


def _header(path: Path) -> tuple[int, dict[str, dict[str, list[int]]]]:
    content = path.read_bytes()
    start = 8 + int.from_bytes(content[:8], "little")
    return start, {name: of for name, of in json.loads(content[8:start]).items() if name != "__metadata__"}


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
    assert all(
        torch.equal(found[name], weight) and found[name].dtype == weight.dtype for name, weight in weights.items()
    )
    with safe_open(path, framework="pt") as file:
        assert file.metadata() == {"format": "pt"}
    start, entries = _header(path)
    assert start % ALIGNMENT == 0
    for entry in entries.values():
        first, last = entry["data_offsets"]
        assert (last - first) % ALIGNMENT or first % ALIGNMENT == 0
    once = path.read_bytes()
    align(path)
    assert path.read_bytes() == once
