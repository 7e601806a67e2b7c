"""The bottlenecks of adapters (Houlsby et al. 2019)."""

from torch import Tensor, nn
from torch.nn import functional

SPREAD = 1e-2  # standard deviation of the initial weights, truncated at two of them: section 3.6 of the paper


class Bottleneck(nn.Module):
    """Down-projection, swish, up-projection and a skip connection: almost the identity at first."""

    def __init__(self, size: int, reduction: int) -> None:
        super().__init__()
        narrow = max(1, size // reduction)
        self.down, self.up = nn.Linear(size, narrow), nn.Linear(narrow, size)
        for layer in (self.down, self.up):
            nn.init.trunc_normal_(layer.weight, std=SPREAD, a=-2 * SPREAD, b=2 * SPREAD)
            nn.init.zeros_(layer.bias)

    def forward(self, hidden: Tensor) -> Tensor:
        """(…, C) → (…, C)."""
        return hidden + self.up(functional.silu(self.down(hidden)))


class Adapted(nn.Module):
    """A linear layer of the body with a bottleneck behind it."""

    def __init__(self, matrix: nn.Linear, reduction: int) -> None:
        super().__init__()
        self.matrix, self.adapter = matrix, Bottleneck(matrix.out_features, reduction)

    def forward(self, hidden: Tensor) -> Tensor:
        """(…, in) → (…, C)."""
        return self.adapter(self.matrix(hidden))
