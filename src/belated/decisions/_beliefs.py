"""What a model expects of an action: how much reward, and when."""

from __future__ import annotations

import math
from typing import NamedTuple

from belated.decisions._aged import AgedPosterior
from belated.decisions._posterior import Posterior
from belated.decisions._silence import ByAge, Silence


class Arrival(NamedTuple):
    """The posterior of the reward that an action's average decision has received up to each age."""

    seconds: tuple[float | None, ...]
    """The ages that some decision has completed; unless silence is `ByAge`, only one: the window, or None."""
    decisions: tuple[float, ...]
    """Number of decisions that have completed each age, weighted by forgetting."""
    means: tuple[float, ...]
    """Posterior means of the reward up to each age."""
    errors: tuple[float, ...]
    """Posterior standard deviations."""


def arrival(posterior: Posterior | AgedPosterior, silence: Silence, block: int, now: float = 0.0) -> Arrival:
    """Return the posterior of the average decision of a block of weights whose first feature is always 1.

    The average decision has the mean features of all that have completed the first age: with n = G₁₁ of them, G₁/n.
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
