"""Results made by hand: the values of every episode are given."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import polars as pl

from belated.runner import Results


def made(values: Mapping[tuple[str, str, str], Sequence[Sequence[float]]], optimal: float = 4.0) -> Results:
    """Return results with the given values, (environment, delay, agent) -> seeds -> episodes."""
    frames = [
        pl.DataFrame(
            {
                "environment": environment,
                "delay_distribution": delay,
                "agent": agent,
                "seed": seed,
                "episode": np.arange(len(curve)),
                "value": curve,
                "optimal": optimal,
            }
        )
        for (environment, delay, agent), curves in values.items()
        for seed, curve in enumerate(curves)
    ]
    return Results(pl.concat(frames))
