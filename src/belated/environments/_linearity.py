"""How far an MDP is from linear in its features, and the value that costs."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from belated.types import Floats, TablePolicy

if TYPE_CHECKING:
    from belated.environments._finite import FiniteMDP


class Linearity(NamedTuple):
    """Errors of the least-squares fit in the features, all 0 up to rounding for a linear MDP."""

    reward_error: float
    """The maximum error of a mean reward."""
    transition_error: float
    """The maximum error of a transition probability."""
    visited_reward_error: float
    """The mean absolute error of the rewards, weighted by how often a policy visits each step, state and action."""
    visited_transition_error: float
    """The same for transitions, with the total variation (half the sum of absolute errors) of each pair."""
    value_lost: float
    """V* minus the value of the policy that is optimal for the fit: the cost of planning with these features, however
    many episodes were seen."""


def linearity(mdp: FiniteMDP, transitions: Floats, policy: TablePolicy | None) -> Linearity:
    """Return the errors of fitting the rewards of `mdp` and `transitions`, weighted by the visits of `policy`."""
    fit = linear_fit(mdp.features, mdp._rewards, transitions)
    visits = visited(mdp, mdp.optimal_policy() if policy is None else TablePolicy(mdp._checked(policy)))
    planned = planned_with(mdp.features, fit, mdp.horizon, mdp._reward_range)
    # V^π = Σ_h Σ d_h(s, a) r_h(s, a), with the rewards that were fitted
    value_lost = mdp.optimal_value - float((visited(mdp, planned) * mdp.rewards).sum())
    weights = visits / len(visits)
    return Linearity(
        float(np.abs(fit.reward_errors).max()),
        float(np.abs(fit.transition_errors).max()),
        float((weights * np.abs(fit.reward_errors)).sum()),
        float((weights * np.abs(fit.transition_errors).sum(axis=-1) / 2).sum()),
        max(0.0, value_lost),
    )


class Fit(NamedTuple):
    """A least-squares fit of the rewards and transitions of each step, and its errors."""

    reward_weights: Floats
    """θ_h, shape (T, d); T is 1 if all steps are the same."""
    transition_weights: Floats
    """μ_h(s'), shape (T, d, S')."""
    reward_errors: Floats
    """φᵀθ_h − r_h, shape (T, S, A)."""
    transition_errors: Floats
    """φᵀμ_h − P_h, shape (T, S, A, S')."""


def linear_fit(features: Floats, rewards: Floats, transitions: Floats) -> Fit:
    """Fit `rewards` (T, S, A) and `transitions` (T, S, A, S') by `features` (S, A, d)."""
    flat = features.reshape(-1, features.shape[-1])

    def fitted(targets: Floats) -> tuple[Floats, Floats]:
        steps, pairs = len(targets), len(flat)
        columns = np.moveaxis(targets.reshape(steps, pairs, -1), 1, 0).reshape(pairs, -1)
        weights = np.asarray(np.linalg.lstsq(flat, columns, rcond=None)[0], np.float64)
        missed: Floats = flat @ weights - columns
        errors = np.moveaxis(missed.reshape(pairs, steps, -1), 1, 0).reshape(targets.shape)
        return np.moveaxis(weights.reshape(flat.shape[1], steps, -1), 1, 0), errors

    theta, reward_errors = fitted(rewards)
    mu, transition_errors = fitted(transitions)
    return Fit(theta[..., 0], mu, reward_errors, transition_errors)


def visited(mdp: FiniteMDP, policy: TablePolicy) -> Floats:
    """Return the occupancy of `policy`: P(s_h = s, a_h = a), shape (H, S, A)."""
    shares, states = np.zeros((mdp.horizon, mdp.states, mdp.actions)), mdp.start
    for h, actions in enumerate(policy.actions):
        shares[h, np.arange(mdp.states), actions] = states
        if h + 1 < mdp.horizon:
            states = np.einsum("sa,sat->t", shares[h], mdp.transitions[h])  # d_{h+1}(s') = Σ d_h(s, a) P_h(s' | s, a)
    return shares


def planned_with(features: Floats, fit: Fit, horizon: int, reward_range: tuple[float, float]) -> TablePolicy:
    """Return the optimal policy of `fit`: Q_h = φᵀ(θ_h + μ_h V_{h+1}), V clipped to the range of returns."""
    low, high = reward_range
    actions, values = np.zeros((horizon, len(features)), np.int64), np.zeros(len(features))
    for h in reversed(range(horizon)):
        theta = fit.reward_weights[min(h, len(fit.reward_weights) - 1)]
        mu = fit.transition_weights[min(h, len(fit.transition_weights) - 1)]
        q = features @ (theta + mu @ values if h + 1 < horizon else theta)
        actions[h] = q.argmax(axis=1)
        values = np.clip(q.max(axis=1), (horizon - h) * low, (horizon - h) * high)
    return TablePolicy(actions)
