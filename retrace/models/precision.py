"""The precision of products."""

import torch


def product_precision(device: torch.device) -> torch.dtype:
    """The precision of matrix products on a device: autocast's where it is on."""
    kind = device.type
    return torch.get_autocast_dtype(kind) if torch.is_autocast_enabled(kind) else torch.float32
