"""Random draws that do not depend on one another."""

import zlib

import torch


def seeded(seed: int, purpose: str) -> torch.Generator:
    """A generator of its own for one purpose, so that one more draw here shifts none elsewhere."""
    return torch.Generator().manual_seed(zlib.crc32(f"{seed} {purpose}".encode()))
