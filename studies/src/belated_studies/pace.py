"""How long an episode takes: planning, playing, learning what arrives and evaluating, in the runner's loop."""

from __future__ import annotations

from belated.delays import DelayDistribution, OutcomeDelays
from belated.environments import FiniteMDP
from belated.runner import Run, Simulation
from belated.types import Algorithm
from belated_studies.timing import Spread, timed


def pace(
    environment: FiniteMDP,
    algorithm: Algorithm,
    delay: DelayDistribution | OutcomeDelays,
    *,
    repeats: int = 5,
    least_seconds: float = 0.1,
) -> Spread:
    """Return microseconds per episode, on one core: the median of the repeats, and their range."""
    simulation = Simulation(Run(environment, algorithm, delay, episodes=10**9, seed=0, record_every=10**8))

    def play(episodes: int) -> None:
        wanted = simulation.played + episodes
        while simulation.played < wanted:
            simulation.advance(wanted - simulation.played)

    return timed(play, repeats=repeats, least_seconds=least_seconds).times(1e6)
