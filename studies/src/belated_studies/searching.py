"""What the searches for settings share: grids that can be quoted, and rungs of equal size on seeds of their own."""

from __future__ import annotations

import numpy as np

from belated.runner import Rung

#: Weak candidates leave early; the last rung decides on seeds that the earlier ones did not see.
RUNGS = (
    Rung(episodes=2000, seeds=range(1000, 1003), keep=8),
    Rung(episodes=5000, seeds=range(1003, 1007), keep=3),
    Rung(episodes=5000, seeds=range(1007, 1017), keep=1),
)
RIDGES = [1.0, 0.1]


def grid(low: float, high: float, count: int) -> list[float]:
    """Return a logarithmic grid, rounded to three digits so that it can be quoted.

    >>> grid(0.1, 2, 3)
    [0.1, 0.447, 2.0]
    """
    return [float(f"{value:.3g}") for value in np.geomspace(low, high, count)]
