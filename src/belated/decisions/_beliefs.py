"""What a model believes: how much comes of an action, and when."""

from __future__ import annotations

import math
from typing import NamedTuple

from belated.decisions._aged import AgedPosterior
from belated.decisions._posterior import Posterior
from belated.decisions._silence import ByAge, Silence


class Arrival(NamedTuple):
    """What has come of an action's decisions up to each age, as a model believes of its average decision."""

    seconds: tuple[float | None, ...]
    """The ages that some decision has reached: one, the window or None, unless silence is `ByAge`."""
    decisions: tuple[float, ...]
    """How many have reached each; less, if some are partly forgotten."""
    means: tuple[float, ...]
    """What has come up to each age, on average."""
    errors: tuple[float, ...]
    """Standard deviations of these beliefs."""


def arrival(posterior: Posterior | AgedPosterior, silence: Silence, block: int, now: float = 0.0) -> Arrival:
    """Return what is believed of a block of weights whose first feature is always 1.

    The average decision has the mean features of all that have reached the first age: with n = G₁₁ of them, G₁/n.
    """
    ends = silence.ends if isinstance(silence, ByAge) else (silence.seconds,)
    first = posterior.stages[0].sums.gram(block)[0, : posterior.dimension]
    seconds: list[float | None] = []
    counts, means, errors = [], [], []
    total = variance = 0.0
    if first[0] <= 0.0:
        return Arrival((), (), (), ())
    believed = posterior.increments(block, first / first[0], now)
    for end, part, (mean, spread) in zip(ends, posterior.stages, believed, strict=True):
        count = float(part.sums.gram(block)[0, 0]) * part.fade(now)
        if count <= 0.0:
            break
        total += mean
        variance += spread
        seconds.append(end)
        counts.append(count)
        means.append(total)
        errors.append(math.sqrt(variance))
    return Arrival(tuple(seconds), tuple(counts), tuple(means), tuple(errors))
