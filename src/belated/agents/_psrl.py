"""Posterior sampling of the whole model on late feedback."""

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
    """Posterior sampling for reinforcement learning (Strens, 2000; Osband et al., 2013) with what has arrived.

    It counts visits and makes no use of the features. For each episode it draws one model from the posterior, the
    transitions of each pair of state and action from a Dirichlet and its mean reward from a normal distribution, and
    plays the policy that is optimal in it. The model has the same tables for all steps where dynamics and rewards do
    not depend on the step, and else tables of each step of its own.

    With n visits of a pair that have arrived, rewards that sum to R, and N(s') visits that went on to s',

        P ~ Dirichlet(α + N),   r ~ N((m·n₀ + R)/(n₀ + n), σ²/(n₀ + n)).

    From the sources are the idea and the family of priors. The defaults, a uniform prior of the transitions and one
    visit's worth of belief in a mean reward of zero with unit noise, are those of the code of Osband and Van Roy.

    Examples
    --------
    >>> from belated import RiverSwim
    >>> agent = DelayedPSRL().start(RiverSwim().problem)
    >>> agent.plan(np.random.default_rng(0)).actions.shape
    (20, 5)
    """

    kind: ClassVar[str] = "psrl"

    shared: bool | None = None
    """Whether the model is the same at all steps; None if the problem says so."""
    concentration: float = 1.0
    """α, how many visits to each next state the prior is worth."""
    reward_mean: float = 0.0
    """m, the prior mean of a reward."""
    reward_visits: float = 1.0
    """n₀, how many visits the prior of a reward is worth."""
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
    """What feedback has taught, for each of T models; the pair (s, a) is entry s·A + a."""

    followed: Ints
    """N(s, a, s'), shape (T, S·A, S)."""
    reward_sums: Floats
    """Rewards received at (s, a), shape (T, S·A)."""


class Model(NamedTuple):
    """The model that was drawn last, and scratch space to plan in it."""

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
        """Nothing is put off."""


@kernel
def draw_model(agent: PSRLRecord, g: int, rng: np.random.Generator) -> None:
    """Draw the model number `g`: for each pair as many gamma numbers as states, and a normal one."""
    model = agent.work
    for j in range(model.rewards.size):
        followed, distribution = agent.learned.followed[g, j], model.transitions[j]
        total, n = 0.0, agent.reward_visits
        for s in range(distribution.size):
            distribution[s] = rng.standard_gamma(agent.concentration + followed[s])
            total += distribution[s]
            n += followed[s]
        for s in range(distribution.size):  # gamma numbers over their sum; all can be too small for floats
            distribution[s] = distribution[s] / total if total > 0.0 else 1.0 / distribution.size
        mean = (agent.reward_mean * agent.reward_visits + agent.learned.reward_sums[g, j]) / n
        model.rewards[j] = mean + agent.noise / math.sqrt(n) * standard_normal(rng)
