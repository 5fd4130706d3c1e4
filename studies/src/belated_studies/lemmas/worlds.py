"""Where the lemmas are measured: sizes, small problems, delays and agents."""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from math import sqrt

from belated.agents import DelayedLPSVI, DelayedPSLB, DelayedPSVI
from belated.delays import DelayDistribution, Geometric, Multinomial, Poisson
from belated.environments import RandomLinearMDP
from belated.theory import ConservativeSettingsWarning
from belated.types import Algorithm
from belated_studies import study

DELTA = 0.1


@dataclass(frozen=True, kw_only=True)
class Size(study.Size):
    """How many seeds of each small world; what is slower has fewer, in proportion."""

    @property
    def folder(self) -> str:
        """The folder of what was measured, which is the worst, or a share, of all seeds."""
        return f"{self.seeds}-seeds"

    def part(self, of_ten: int) -> range:
        """Return the seeds of something that has `of_ten` where a small world has ten."""
        return range(max(1, of_ten * self.seeds // 10))


QUICK = Size(name="quick", seeds=10)
FULL = Size(name="full", seeds=50)

WORLDS = tuple(RandomLinearMDP(states=3, actions=2, dimension=2, horizon=2, seed=seed) for seed in range(4))
SMALL_EPISODES, SMALL_DELAY = 20, Poisson(3)
MEDIUM = RandomLinearMDP(states=5, actions=3, dimension=3, horizon=4, seed=1)
BANDIT = RandomLinearMDP(states=1, actions=10, dimension=3, horizon=1, seed=1, bernoulli=True)
EPISODES = 500
"""Of the larger world and of the bandit."""
DELAYS: Mapping[str, DelayDistribution] = {
    "Poisson": Poisson(20),
    "geometric": Geometric(20),
    "multinomial": Multinomial(categories=[0, 10, 75], probabilities=[0.3, 0.5, 0.2]),
}

PRACTICAL = DelayedPSVI(draws=2, scale=1.0)
NARROW = DelayedPSVI(draws=2, scale=0.2)


@contextmanager
def forewarned() -> Iterator[None]:
    """Take the theorems' settings without the warning that this study is there to explain."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConservativeSettingsWarning)
        yield


def shown(settings: Algorithm) -> str:
    """Return the settings that a theorem speaks of."""
    if isinstance(settings, DelayedLPSVI):
        return f"chains, M = {settings.draws}, √γ = {sqrt(settings.temperature):.3g}, N = {settings.steps}"
    assert isinstance(settings, DelayedPSVI | DelayedPSLB)
    return f"exact draws, M = {settings.draws}, ν = {settings.scale:.3g}"
