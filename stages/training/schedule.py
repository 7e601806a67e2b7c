"""The learning rate over a run: up, flat, down."""


def rate_factor(done: float, warmup: float, flat: float) -> float:
    """The share of the peak rate when the share `done` of the steps is behind.

    Rises linearly up to `warmup`, stays at 1 up to `flat`, then falls linearly to 0 at the end.
    """
    if done < warmup:
        return done / warmup
    if done < flat or flat >= 1:
        return 1.0
    return max(0.0, (1 - done) / (1 - flat))
