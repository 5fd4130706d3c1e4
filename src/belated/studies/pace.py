"""How long an episode takes: planning, playing, taking in what arrives and evaluating, in the runner's loop."""

from __future__ import annotations

import time
from typing import NamedTuple

import numpy as np
from threadpoolctl import threadpool_limits

from belated.delays import DelayLaw, OutcomeLaw
from belated.environments import FiniteMDP
from belated.runner.loop import Simulation
from belated.types import Algorithm


class Pace(NamedTuple):
    """Microseconds per episode: the median of the repeats, and their range."""

    median: float
    low: float
    high: float


def pace(
    environment: FiniteMDP,
    algorithm: Algorithm,
    delay: DelayLaw | OutcomeLaw,
    *,
    repeats: int = 5,
    least_seconds: float = 0.1,
) -> Pace:
    """Time blocks of a run, on one core, after a first block that compiles."""
    measured = []
    with threadpool_limits(1):
        run = Simulation(environment, algorithm, delay, episodes=10**9, seed=0, record_every=10**8)
        run.advance()
        for _ in range(repeats):
            began, episodes = time.perf_counter(), 0
            while (elapsed := time.perf_counter() - began) < least_seconds:
                episodes += run.advance()
            measured.append(1e6 * elapsed / episodes)
    return Pace(float(np.median(measured)), min(measured), max(measured))
