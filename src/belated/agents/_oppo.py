"""Delayed OPPO: optimistic proximal policy optimisation with late trajectories and rewards."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from belated._kernels.jit import copy, entry_point
from belated.agents._occupancy import Model, PolicyOptimisation, Rates, extreme_mean, occupancy_bound, rank
from belated.types import Floats, Ints, TableProblem, Trajectory


@dataclass(frozen=True, kw_only=True)
class DelayedOPPO(PolicyOptimisation):
    """Delayed OPPO (Lancewicki et al., 2022) with bandit feedback, for adversarial rewards.

    With costs c = 1 − r, every arrived episode j gives an estimate of the cost, ĉ_h(s, a) = c/(u_h(s)·π^j_h(a|s) + γ)
    on its trajectory and 0 elsewhere, where u is the probability that π^j visits s. ĉ gives Q^j, the action values of
    π^j, and the policy is updated by exponential weights: π_h(a|s) ∝ exp(−η Σ_j Q^j_h(s, a)).

    If the dynamics are known, u and Q^j are exact. Otherwise they are the maximum u and the minimum Q^j over all
    dynamics in confidence sets computed from counts.

    From the source, as we understand it: the estimate, the optimism on both sides and the update. Our choices:
    confidence sets from everything that has arrived by the time of the update, with the widths of Jin et al. (2020) for
    each step, 2√(P̂L/n) + 14L/(3n), L = ln(SAHK/δ), n = max{N − 1, 1}, and one for the first state; `confidence`, since
    these widths are far larger than what works best; and the default rates. These balance the three leading terms H·ln
    A/η + ηH³(K + D)/γ + γHSAK of an analysis like the source's: γ = (H√(ln A·(K + D))/(SAK))^(2/3) and η = √(γ ln A/(K
    + D))/H, which are small. A tuned `step_size` learns much faster.

    Examples
    --------
    >>> from belated import AdversarialMDP
    >>> agent = DelayedOPPO(step_size=0.05).start(AdversarialMDP().problem)
    >>> agent.plan(np.random.default_rng(0)).actions.shape
    (5, 5)
    """

    kind: ClassVar[str] = "oppo"

    def rates(self, problem: TableProblem) -> Rates:
        total = float(self.episodes) * (1.0 + self.mean_delay)  # K + D
        log_actions = math.log(max(problem.actions, 2))
        pairs = problem.states * problem.actions
        gamma = self.exploration or (
            (problem.horizon * math.sqrt(log_actions * total) / (pairs * self.episodes)) ** (2.0 / 3.0)
        )
        eta = self.step_size or math.sqrt(gamma * log_actions / total) / problem.horizon
        return Rates(float(eta), float(gamma))

    def improve(
        self, model: Model, past: Floats, now: Floats, trajectory: Trajectory, rates: Rates, scores: Floats
    ) -> None:
        """Subtract ηQ of the trajectory's policy from `scores`."""
        add_optimistic_values(model, past, trajectory.rows, trajectory.actions, trajectory.rewards, rates, scores)


@entry_point
def add_optimistic_values(
    model: Model, past: Floats, states: Ints, actions: Ints, rewards: Floats, rates: Rates, scores: Floats
) -> None:
    """Subtract ηQ from `scores`, Q_h(s, a) = ĉ_h(s, a) + min_P Σ P(s'|s, a) V_{h+1}(s') and V = Σ_a π Q."""
    horizon, size, choices = scores.shape
    reached = np.zeros((horizon, size))
    occupancy_bound(model, past, True, reached)
    order = np.zeros(size, np.int64)
    following, values = np.zeros(size), np.zeros(size)
    for h in range(horizon - 1, -1, -1):
        rank(following, False, order)
        for s in range(size):
            values[s] = 0.0
            for a in range(choices):
                q = extreme_mean(model.low[h, s, a], model.high[h, s, a], order, following)
                if s == states[h] and a == actions[h]:
                    q += (1.0 - rewards[h]) / (reached[h, s] * past[h, s, a] + rates.exploration)
                values[s] += past[h, s, a] * q
                scores[h, s, a] -= rates.step_size * q
        copy(values, following)
