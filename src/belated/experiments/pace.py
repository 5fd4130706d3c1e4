"""How long an episode takes: planning, playing, learning what arrives and evaluating, in the runner's loop."""

from __future__ import annotations

from belated.delays import DelayLaw, OutcomeLaw
from belated.environments import FiniteMDP
from belated.runner.loop import BLOCK, Simulation
from belated.timing import Spread, timed
from belated.types import Algorithm

#: Microseconds per episode.
Pace = Spread


def pace(
    environment: FiniteMDP,
    algorithm: Algorithm,
    delay: DelayLaw | OutcomeLaw,
    *,
    repeats: int = 5,
    least_seconds: float = 0.1,
) -> Pace:
    """Time blocks of a run, on one core, after a first block that compiles."""
    run = Simulation(environment, algorithm, delay, episodes=10**9, seed=0, record_every=10**8)

    def blocks(count: int) -> None:
        for _ in range(count):
            run.advance(BLOCK)

    return timed(blocks, repeats=repeats, least_seconds=least_seconds).times(1e6 / BLOCK)
