"""What the artefacts of the study of systems share: sizes, testbeds, delays, and the settings of its agents.

Settings that matter were searched for on other seeds, and bandits on another instance.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Self

from belated.agents import DelayedPHE, DelayedPSVI, MultiBatch, Settings, TabularUCBVI
from belated.delays import Constant, DelayByReward, DelayDistribution, Geometric, Lossy, OutcomeDelays, Poisson
from belated.environments import AdversarialMDP, FiniteMDP, LinearBandit, SyntheticLinearMDP
from belated.runner import Experiment
from belated_studies import study
from belated_studies.winners import tuned

NOISE = 0.5
"""Of the rewards of the linear bandit."""
WINDOW = 100
"""Rounds after which a conversion no longer counts."""
PERIOD = 1000
"""Episodes after which an adversary repeats itself."""
POISSON = {"poisson-50": Poisson(50)}
#: A conversion is reported later, and the lack of one never.
SILENT = DelayByReward(zero=Lossy(Constant(0), missing=1.0), positive=Geometric(mean=WINDOW / 2))
#: The same, but the lack of one is told when the window is over.
TOLD = DelayByReward(zero=Constant(WINDOW), positive=Geometric(mean=WINDOW / 2))


@dataclass(frozen=True, kw_only=True)
class Size(study.Size):
    """How much is played."""

    rounds: int
    """Rounds of a bandit."""
    episodes: int
    """Episodes of an MDP."""
    slow_seeds: int
    """Seeds where most agents are asked in Python."""

    def resized(self, *, seeds: int | None = None, episodes: int | None = None) -> Self:
        """Return this size with other seeds, of fast and slow agents alike, and other episodes of an MDP."""
        size = super().resized(seeds=seeds, episodes=episodes)
        size = size if seeds is None else replace(size, slow_seeds=seeds)
        return size if episodes is None else replace(size, name=f"{self.name}-{episodes}-episodes")


FULL = Size(name="full", seeds=30, rounds=20_000, episodes=5000, slow_seeds=10)
QUICK = Size(name="quick", seeds=6, rounds=4000, episodes=1000, slow_seeds=3)


def experiment(
    name: str,
    size: Size,
    worlds: FiniteMDP | Mapping[str, FiniteMDP],
    agents: Mapping[str, Settings],
    delays: Mapping[str, DelayDistribution] | Mapping[str, OutcomeDelays] = POISSON,
    *,
    rounds: bool = False,
    slow: bool = False,
) -> Experiment:
    """Return an experiment with the episodes of an MDP, or with the `rounds` of a bandit, of which 200 get a row."""
    episodes, record_every = (size.rounds, max(1, size.rounds // 200)) if rounds else (size.episodes, 1)
    return Experiment(
        name=name,
        environments=worlds,
        agents=agents,
        delays=delays,
        episodes=episodes,
        seeds=size.slow_seeds if slow else size.seeds,
        record_every=record_every,
    )


def late(mean: int) -> DelayDistribution:
    """Return geometric delays, the exponential's counterpart in integers."""
    return Geometric(mean=mean) if mean else Constant(0)


def bandit(dimension: int, seed: int = 0) -> LinearBandit:
    """Return the linear bandit of the study: 100 actions in the unit ball, Gaussian noise."""
    return LinearBandit(dimension=dimension, actions=100, noise=NOISE, seed=seed)


def conversions(seed: int = 0) -> LinearBandit:
    """Return the bandit whose rewards are conversions."""
    return LinearBandit(dimension=10, actions=20, reward="conversion", seed=seed)


def synthetic() -> SyntheticLinearMDP:
    """Return the MDP on which every episodic system is measured."""
    return SyntheticLinearMDP(actions=20)


def adversaries(*, known_dynamics: bool = False) -> dict[str, AdversarialMDP]:
    """Return the MDPs whose rewards an adversary changes, by what it does."""
    each = ("switching", "drifting", "trap")
    return {name: AdversarialMDP(adversary=name, period=PERIOD, known_dynamics=known_dynamics) for name in each}


def mdp_agents(size: Size) -> dict[str, Settings]:
    """Return the episodic systems with settings found on the synthetic MDP, those of others untuned."""
    best = tuned("synthetic")
    psvi = best["psvi-0.1"]
    assert isinstance(psvi, DelayedPSVI)
    return {
        "psvi": psvi,
        "lpsvi": best["lpsvi"],
        "phe": DelayedPHE(scale=psvi.scale, noise=psvi.noise, ridge=psvi.ridge, draws=psvi.draws),
        "ucbvi": best["ucbvi"],
        "tabular-ucbvi": TabularUCBVI(bonus_form="bernstein", bonus_scale=0.002, episodes=size.episodes),
        "multi-batch": MultiBatch(base=best["ucbvi"]),
    }
