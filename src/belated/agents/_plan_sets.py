"""Sets of plans as data: several policies drawn from one posterior, with their action probabilities.

Every agent that plays in simulators acts on weights: with probability ε at random, otherwise by maximising

    q_a = max_m φ(s, a)ᵀwᵐ + β‖φ(s, a)‖_{Ω⁻¹}.

So J of its policies are a few arrays, which can be stored, sent and queried for π_j(a | s) of all of them at once.
"""

from __future__ import annotations

import math
from typing import NamedTuple, Protocol, runtime_checkable

import numpy as np

from belated._kernels.jit import entry_point, kernel
from belated.agents._transitions import Steps
from belated.types import Agent, Floats, Ints

_NONE = np.zeros(0, np.int64)


class Widths(NamedTuple):
    """Ω⁻¹ of the regressions of a plan, from which widths ‖φ‖_{Ω⁻¹} are computed; empty without a bonus."""

    starts: Ints
    """Start of the features of each regression and block in `active`, shape (T·B + 1,)."""
    active: Ints
    """Numbers of the features within each block."""
    offsets: Ints
    """Start of Ω⁻¹ of each block in `inverse`, shape (T·B + 1,)."""
    inverse: Floats
    """Ω⁻¹ of each block, concatenated."""
    beta: Floats
    """β of each step, shape (H,)."""


NO_WIDTHS = Widths(_NONE, _NONE, _NONE, np.zeros(0), np.zeros(0))


@kernel
def width_of(indices: Ints, values: Floats, widths: Widths, block: int, ridge: float) -> float:
    """Return ‖φ‖_{Ω⁻¹} of a vector within a block."""
    active, total = widths.active[widths.starts[block] : widths.starts[block + 1]], 0.0
    k, first = active.size, widths.offsets[block]
    for i in range(indices.size):
        at = np.searchsorted(active, indices[i])
        if at >= k or active[at] != indices[i]:
            total += values[i] * values[i] / ridge
            continue
        for j in range(indices.size):
            other = np.searchsorted(active, indices[j])
            if other < k and active[other] == indices[j]:
                total += values[i] * widths.inverse[first + at * k + other] * values[j]
    return math.sqrt(max(total, 0.0))


class PlanSet(NamedTuple):
    """J policies of one agent, as plain arrays and numbers."""

    weights: Floats
    """wᵐ of each member, step, action and feature, shape (J, T, M, A, k); T is 1 if all steps have the same weights,
    else H.

    With joint features there is one block instead of A."""
    features: Ints
    """The numbers of the k features, ascending; all others have weight 0."""
    widths: Widths
    """Widths of a bonus, common to all members: of T·A blocks, or of A if all steps share one regression."""
    caps: Floats
    """Maximum possible return from each step on, at which values tie; inf without a cap. Shape (H,)."""
    ridge: float
    """λ of the widths."""
    epsilon: float
    """The probability of a random action."""
    tie: float
    """Relative tolerance for ties between action values."""
    first: bool
    """Whether ties are broken by the first action instead of uniformly."""


def by_action(plans: PlanSet, actions: int, size: int) -> PlanSet:
    """Convert a set on joint features to one on ψ(s); joint feature a·size + i becomes feature i of action a."""
    weights = np.zeros((*plans.weights.shape[:3], actions * size))
    weights[..., plans.features] = plans.weights[..., 0, :]
    return plans._replace(
        weights=weights.reshape(*plans.weights.shape[:3], actions, size),
        features=np.arange(size),
        widths=_split(plans.widths, actions, size) if plans.widths.starts.size else plans.widths,
    )


def _split(widths: Widths, actions: int, size: int) -> Widths:
    """Split Ω⁻¹, which is block-diagonal, by action."""
    active: list[Ints] = []
    inverses: list[Floats] = []
    for begin, end, offset in zip(widths.starts[:-1], widths.starts[1:], widths.offsets[:-1], strict=True):
        numbers = widths.active[begin:end]
        inverse = widths.inverse[offset : offset + (end - begin) ** 2].reshape(end - begin, end - begin)
        for action in range(actions):
            own = np.flatnonzero(numbers // size == action)
            active.append(numbers[own] % size)
            inverses.append(inverse[np.ix_(own, own)].ravel())
    lengths = np.array([each.size for each in active], np.int64)
    return Widths(
        np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64),
        np.concatenate(active),
        np.concatenate([[0], np.cumsum(lengths**2)]).astype(np.int64),
        np.concatenate(inverses),
        widths.beta,
    )


@runtime_checkable
class PlansSets(Agent, Protocol):
    """An agent whose policies can be drawn as a set."""

    def plan_set(self, rng: np.random.Generator, count: int) -> PlanSet:
        """Return the next `count` policies, or one if all would be equal; what was learned does not change."""


@runtime_checkable
class LearnsSteps(Protocol):
    """An agent that can learn the steps of many episodes at once."""

    def learn_steps(self, steps: Steps) -> None:
        """Learn these steps, replacing everything learned before."""


@kernel
def distributions_of(
    plans: PlanSet, step: int, columns: Ints, values: Floats, offered: Ints, distributions: Floats
) -> None:
    """Set π_j(a | s) of each member and action on offer, shape (J, K), in the state with `values` in these `columns`.

    A column is an index into `plans.features`. An action unknown to the plans has value 0.
    """
    members, steps, draws, actions, _ = plans.weights.shape
    count = offered.size
    h = min(step, steps - 1)
    bonus = plans.widths.starts.size > 0
    blocks = plans.widths.starts.size - 1
    for j in range(members):
        best = -np.inf
        for i in range(count):
            a = offered[i]
            value = 0.0
            if a < actions:
                value = -np.inf
                for m in range(draws):
                    total, w = 0.0, plans.weights[j, h, m, a]
                    for c in range(columns.size):
                        total += w[columns[c]] * values[c]
                    value = max(value, total)
                if bonus:
                    block = a if blocks == actions else h * actions + a
                    value += plans.widths.beta[h] * width_of(columns, values, plans.widths, block, plans.ridge)
            distributions[j, i] = value
            best = max(best, value)
        best = min(best, plans.caps[step])
        least = best - plans.tie * max(1.0, abs(best))
        ties = 0
        for i in range(count):
            ties += distributions[j, i] >= least
        if plans.first:
            ties = min(ties, 1)
        given = 0
        for i in range(count):
            among = distributions[j, i] >= least and given < ties
            given += among
            distributions[j, i] = plans.epsilon / count + ((1.0 - plans.epsilon) / ties if among else 0.0)


fill_distributions = entry_point(distributions_of)
