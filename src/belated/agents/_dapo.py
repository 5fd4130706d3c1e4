"""Delay-adapted policy optimisation: importance weights that account for policy changes during the delay."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from belated._kernels.jit import copy, entry_point
from belated._util.validate import real
from belated.agents._occupancy import Model, PolicyOptimisation, Rates, bound_occupancy, extreme_mean, rank
from belated.types import Floats, Ints, TableProblem, Trajectory


@dataclass(frozen=True, kw_only=True)
class DelayedDAPO(PolicyOptimisation):
    """DAPO (Lancewicki et al., 2023), for adversarial rewards.

    Let π be the policy of an episode, π' the policy when its feedback arrives, q_h(s) the probability that π visits s,
    and L_h the costs, 1 − r, of its trajectory from step h on. On the trajectory,

    Q̂_h(s, a) = ρ·L_h/(q_h(s)π_h(a|s) + γ), with ρ = π/max{π, π'}, and 0 elsewhere:

    actions that π' prefers more than π weigh less. A bonus encourages rarely visited states, b_h(s) = Σ_a
    ρ·π'_h(a|s)·3γH/(q_h(s)π_h(a|s) + γ), and B is its action value under π'. The policy is π_h(a|s) ∝ exp(−η Σ (Q̂_h(s,
    a) − B_h(s, a))) over all that has arrived.

    If the dynamics are known, q and B are exact. Otherwise q is the maximum u over all dynamics in the confidence sets,
    B is the maximum action value, and the 3γH of the bonus becomes 3γH + H·(u − l)·π_h(a|s), where l is the minimum of
    q.

    From the source, as we understand it: ρ, Q̂, b, B, the update, and the default rates, η = 1/√(H²SAK + H⁴(K + D)) and
    γ = 2ηH. The bonus for unknown dynamics is that of Luo et al. (2021), on which the source builds. Our choices: the
    confidence sets (see `DelayedOPPO`), `confidence`, and `bonus_scale`. The theory's rates are small; a tuned
    `step_size` learns much faster.

    Examples
    --------
    >>> from belated import AdversarialMDP
    >>> agent = DelayedDAPO(step_size=0.05).start(AdversarialMDP().problem)
    >>> agent.plan(np.random.default_rng(0)).actions.shape
    (5, 5)
    """

    kind: ClassVar[str] = "dapo"

    bonus_scale: float = 1.0
    """Factor on the bonus; 1 is the theory's."""

    def __post_init__(self) -> None:
        super().__post_init__()
        real("bonus_scale", self.bonus_scale, at_least=0)

    def rates(self, problem: TableProblem) -> Rates:
        horizon, pairs = problem.horizon, problem.states * problem.actions
        total = float(self.episodes) * (1.0 + self.mean_delay)  # K + D
        eta = self.step_size or 1.0 / math.sqrt(horizon**2 * pairs * self.episodes + horizon**4 * total)
        return Rates(float(eta), float(self.exploration or 2.0 * eta * horizon))

    def improve(
        self, model: Model, past: Floats, now: Floats, trajectory: Trajectory, rates: Rates, scores: Floats
    ) -> None:
        """Subtract η(Q̂ − B) of a trajectory from `scores`."""
        most, least = np.empty((2, *past.shape[:2]))
        bound_occupancy(model, past, True, most)
        subtract_costs(past, now, most, trajectory.rows, trajectory.actions, trajectory.rewards, rates, scores)
        if self.bonus_scale > 0:
            bound_occupancy(model, past, False, least)
            add_bonus(model, past, now, most, least, float(self.bonus_scale), rates, scores)


@entry_point
def subtract_costs(
    past: Floats, now: Floats, most: Floats, states: Ints, actions: Ints, rewards: Floats, rates: Rates, scores: Floats
) -> None:
    """Subtract ηQ̂ from `scores` along the trajectory."""
    to_go = 0.0
    for h in range(actions.size - 1, -1, -1):
        s, a = states[h], actions[h]
        to_go += 1.0 - rewards[h]
        played = past[h, s, a]
        adapted = played / max(played, now[h, s, a]) if played > 0.0 else 0.0
        scores[h, s, a] -= rates.step_size * adapted * to_go / (most[h, s] * played + rates.exploration)


@entry_point
def add_bonus(
    model: Model, past: Floats, now: Floats, most: Floats, least: Floats, scale: float, rates: Rates, scores: Floats
) -> None:
    """Add ηB to `scores`, B_h(s, a) = b_h(s) + max_P Σ P(s'|s, a) Σ_{a'} π'(a'|s') B_{h+1}(s', a')."""
    horizon, size, choices = scores.shape
    order = np.zeros(size, np.int64)
    following, values = np.zeros(size), np.zeros(size)
    for h in range(horizon - 1, -1, -1):
        rank(following, True, order)
        for s in range(size):
            bonus = 0.0
            for a in range(choices):
                unsure = 3.0 * rates.exploration + (most[h, s] - least[h, s]) * past[h, s, a]
                seen = most[h, s] * past[h, s, a] + rates.exploration
                # ρ·π' = min{π, π'}
                bonus += min(past[h, s, a], now[h, s, a]) * scale * horizon * unsure / seen
            values[s] = 0.0
            for a in range(choices):
                b = bonus + extreme_mean(model.low[h, s, a], model.high[h, s, a], order, following)
                values[s] += now[h, s, a] * b
                scores[h, s, a] += rates.step_size * b
        copy(values, following)
