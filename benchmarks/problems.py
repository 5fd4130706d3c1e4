"""The problems on which speed is measured, and how much effort a run makes."""

from __future__ import annotations

from dataclasses import dataclass, replace

from belated.agents import DelayedPSVI
from belated.delays import Poisson
from belated.environments import FiniteMDP, RandomLinearMDP, SyntheticLinearMDP

#: The settings of Delayed-PSVI wherever it is measured: M = 2 draws.
AGENT = DelayedPSVI(scale=5.0, noise=0.1)
DELAY = Poisson(50)


def small() -> FiniteMDP:
    """Return the small problem: S=2, A=50, d=10, H=20."""
    return SyntheticLinearMDP(actions=50)


def medium() -> FiniteMDP:
    """Return the medium problem: S=100, A=10, d=64, H=20."""
    return RandomLinearMDP(states=100, actions=10, dimension=64, horizon=20)


def large(dimension: int) -> FiniteMDP:
    """Return a problem of few states in which only the dimension is large: S=4, A=3, H=10."""
    return RandomLinearMDP(states=4, actions=3, dimension=dimension, horizon=10)


@dataclass(frozen=True)
class Effort:
    """How long and how often things are measured."""

    repeats: int
    small_episodes: int
    """Episodes against the naive transcription on the small problem; its cost grows with them."""
    medium_episodes: int
    flat_episodes: int
    long_episodes: int
    """Episodes of the run whose memory is watched."""
    core_episodes: int
    """Episodes of each seed when one core is compared with two: seconds of work, beside which starting is nothing."""
    peer_episodes: int
    """Episodes of a peer that learns MDPs; its cost may grow with their square."""
    rounds: int
    """Decisions of a linear bandit."""
    dimension: int
    """The large d."""
    least_seconds: float
    """How long a compiled loop runs for one reading."""
    patient: bool
    """Whether peers that are not there yet are installed, and what takes minutes is measured."""


FULL = Effort(
    repeats=5,
    small_episodes=4000,
    medium_episodes=200,
    flat_episodes=64 * 256,
    long_episodes=1_000_000,
    core_episodes=400_000,
    peer_episodes=20,
    rounds=300,
    dimension=1024,
    least_seconds=0.2,
    patient=True,
)
QUICK = replace(
    FULL,
    repeats=2,
    small_episodes=500,
    medium_episodes=40,
    long_episodes=50_000,
    core_episodes=400_000,
    peer_episodes=4,
    rounds=60,
    least_seconds=0.05,
    patient=False,
)
