"""Sizes as commands print them."""


def size(count: int) -> str:
    """Bytes as people say them."""
    return f"{count / 2**30:.1f} GiB" if count >= 2**30 else f"{count / 2**20:.0f} MiB"
