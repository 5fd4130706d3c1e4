"""Posterior sampling of the whole MDP from late feedback."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar, NamedTuple

import numpy as np

from belated._kernels.jit import kernel
from belated._kernels.normals import standard_normal
from belated._kernels.planning import greedy
from belated._util.validate import flag, real
from belated.agents import _invariants as invariants
from belated.agents._base import Arrival, CompiledSettings
from belated.types import Floats, Ints, TableProblem


@dataclass(frozen=True, kw_only=True)
class DelayedPSRL(CompiledSettings):
    """Posterior sampling for reinforcement learning (Strens, 2000; Osband et al., 2013) on late feedback.

    It counts visits and does not use the features. For each episode it draws one model from the posterior (transitions
    from a Dirichlet, mean rewards from a normal distribution, for each pair of state and action) and plays the optimal
    policy of that model. All steps share one model if dynamics and rewards do not depend on the step; otherwise each
    step has its own.

    With n arrived visits of a pair, sum of rewards R, and N(s') visits followed by s',

        P ~ Dirichlet(α + N),   r ~ N((m·n₀ + R)/(n₀ + n), σ²/(n₀ + n)).

    The idea and the family of priors are from the sources. The defaults, a uniform prior on transitions and a prior
    with the weight of one visit for a mean reward of zero with unit noise, are those of the code of Osband and Van Roy.

    Examples
    --------
    >>> from belated import RiverSwim
    >>> agent = DelayedPSRL().start(RiverSwim().problem)
    >>> agent.plan(np.random.default_rng(0)).actions.shape
    (20, 5)
    """

    kind: ClassVar[str] = "psrl"

    shared: bool | None = None
    """Whether all steps share one model; None to decide by the problem."""
    concentration: float = 1.0
    """α, the prior weight of each next state, in visits."""
    reward_mean: float = 0.0
    """m, the prior mean of a reward."""
    reward_visits: float = 1.0
    """n₀, the prior weight of the mean reward, in visits."""
    noise: float = 1.0
    """σ, the standard deviation of a reward."""

    def __post_init__(self) -> None:
        if self.shared is not None:
            flag("shared", self.shared)
        real("concentration", self.concentration, above=0)
        real("reward_mean", self.reward_mean)
        real("reward_visits", self.reward_visits, above=0)
        real("noise", self.noise, at_least=0)

    def record(self, problem: TableProblem) -> PSRLRecord:
        shared = problem.homogeneous if self.shared is None else self.shared
        states, pairs, horizon = problem.states, problem.states * problem.actions, problem.horizon
        slots = 1 if shared else horizon
        return PSRLRecord(
            Visits(np.zeros((slots, pairs, states), np.int64), np.zeros((slots, pairs))),
            Model(np.zeros((pairs, states)), np.zeros(pairs), np.zeros(pairs), np.zeros((horizon + 1, states))),
            float(self.concentration),
            float(self.reward_mean),
            float(self.reward_visits),
            float(self.noise),
        )

    def check_learned(self, learned: Visits, problem: TableProblem) -> None:
        invariants.counts("followed", learned.followed)
        invariants.reward_sums("reward_sums", learned.reward_sums, learned.followed.sum(axis=2), problem)


class Visits(NamedTuple):
    """Everything learned from feedback, for each of T models; the pair (s, a) is entry s·A + a."""

    followed: Ints
    """N(s, a, s'), shape (T, S·A, S)."""
    reward_sums: Floats
    """Rewards received at (s, a), shape (T, S·A)."""


class Model(NamedTuple):
    """The model drawn last, and scratch space for planning."""

    transitions: Floats
    rewards: Floats
    q: Floats
    values: Floats


class PSRLRecord(NamedTuple):
    learned: Visits
    work: Model
    concentration: float
    reward_mean: float
    reward_visits: float
    noise: float

    def plan(self, rng: np.random.Generator, start: int, policy: Ints) -> None:
        """Draw a model and find its optimal policy by backward induction."""
        model, horizon = self.work, policy.shape[0]
        shared = self.learned.followed.shape[0] == 1
        model.values[horizon] = 0.0
        if shared:
            draw_model(self, 0, rng)
        for h in range(horizon - 1, -1, -1):
            if not shared:
                draw_model(self, h, rng)
            for j in range(model.q.size):
                distribution, following = model.transitions[j], model.values[h + 1]
                value = model.rewards[j]
                for s in range(distribution.size):
                    value += distribution[s] * following[s]
                model.q[j] = value
            greedy(model.q, np.inf, False, rng, model.values[h], policy[h])

    def learn(self, arrival: Arrival) -> None:
        learned, states = self.learned, arrival.states
        shared = learned.followed.shape[0] == 1
        per_state = learned.followed.shape[1] // learned.followed.shape[2]
        for h in range(arrival.actions.size):
            g = 0 if shared else h
            j = states[h] * per_state + arrival.actions[h]
            learned.followed[g, j, states[h + 1]] += 1
            learned.reward_sums[g, j] += arrival.rewards[h]

    def settle(self) -> None:
        """Do nothing: `learn` defers no work."""


@kernel
def draw_model(agent: PSRLRecord, g: int, rng: np.random.Generator) -> None:
    """Draw model `g`: for each pair one gamma variable per state, and a normal one."""
    model = agent.work
    for j in range(model.rewards.size):
        followed, distribution = agent.learned.followed[g, j], model.transitions[j]
        total, n = 0.0, agent.reward_visits
        for s in range(distribution.size):
            distribution[s] = rng.standard_gamma(agent.concentration + followed[s])
            total += distribution[s]
            n += followed[s]
        for s in range(distribution.size):  # normalised gamma variables; all of them can underflow
            distribution[s] = distribution[s] / total if total > 0.0 else 1.0 / distribution.size
        mean = (agent.reward_mean * agent.reward_visits + agent.learned.reward_sums[g, j]) / n
        model.rewards[j] = mean + agent.noise / math.sqrt(n) * standard_normal(rng)
