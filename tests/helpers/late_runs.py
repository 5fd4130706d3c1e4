"""Worlds, distributions and agents of runs that several tests play."""

from __future__ import annotations

import belated
from belated.agents import Settings
from belated.delays import OutcomeDelays

WORLDS: dict[str, belated.FiniteMDP] = {
    "random": belated.LinearBandit(dimension=3, actions=3, sets="random", contexts=7),
    "changing": belated.LinearBandit(dimension=3, actions=3, sets="changing", contexts=5, noise=0.2),
    "fixed-logistic": belated.LinearBandit(dimension=3, actions=3, reward="logistic"),
    "conversion": belated.LinearBandit(dimension=3, actions=3, sets="random", contexts=4, reward="conversion"),
    "table": belated.ClassificationBandit("wine", order="recorded"),
    "mdp": belated.RandomLinearMDP(states=4, actions=3, dimension=3, horizon=3, bernoulli=True),
}
DELAYS: dict[str, belated.DelayDistribution | OutcomeDelays] = {
    "poisson": belated.Poisson(6),
    "by-action": belated.DelayByAction(
        [belated.Constant(0), belated.Geometric(9), belated.Lossy(belated.Poisson(3), 0.2)]
    ),
    "by-reward": belated.DelayByReward(
        zero=belated.Lossy(belated.Constant(0), missing=1.0), positive=belated.Geometric(20)
    ),
}
AGENTS: dict[str, Settings] = {
    "psvi": belated.DelayedPSVI(noise=0.5),
    "greedy": belated.EpsilonGreedy(epsilon=0.2),
    "random": belated.RandomPolicy(),
}
