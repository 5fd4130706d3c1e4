"""Sets of plans as data: several policies drawn from one posterior, and what each of them does in a state.

Every agent that plays in simulators acts on weights: with probability ε at random, else on one of the largest of

    q_a = max_m φ(s, a)ᵀwᵐ + β‖φ(s, a)‖_{Ω⁻¹}.

So J of its policies are a few arrays, which can be stored, sent and asked for π_j(a | s) of all of them at once.
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
    """Where the features of each regression and block begin in `active`, shape (T·B + 1,)."""
    active: Ints
    """Numbers of the features inside each block."""
    offsets: Ints
    """Where Ω⁻¹ of each block begins in `inverse`, shape (T·B + 1,)."""
    inverse: Floats
    """Ω⁻¹ of each block, one after the other."""
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
    """J policies of one agent: arrays and numbers, nothing else."""

    weights: Floats
    """wᵐ of each member, step, action and feature, shape (J, T, M, A, k); T is 1 if all steps act alike, else H.

    With joint features there is one block instead of A."""
    features: Ints
    """The numbers of the k features, ascending; all others have weight 0."""
    widths: Widths
    """Of a bonus, the same for all members: of T·A blocks, or of A if all steps share one regression."""
    caps: Floats
    """The largest return that is possible from each step on, by which values count as equal; inf: none. Shape (H,)."""
    ridge: float
    """λ, of the widths."""
    epsilon: float
    """The probability of a random action."""
    tie: float
    """Values count as equal if they differ by this part at most."""
    first: bool
    """Whether the first of equal values is taken, instead of any."""


def by_action(plans: PlanSet, actions: int, size: int) -> PlanSet:
    """Return a set of joint features as one of ψ(s), where feature a·size + i was feature i of action a."""
    weights = np.zeros((*plans.weights.shape[:3], actions * size))
    weights[..., plans.features] = plans.weights[..., 0, :]
    return plans._replace(
        weights=weights.reshape(*plans.weights.shape[:3], actions, size),
        features=np.arange(size),
        widths=_split(plans.widths, actions, size) if plans.widths.starts.size else plans.widths,
    )


def _split(widths: Widths, actions: int, size: int) -> Widths:
    """Return Ω⁻¹ of each action, where Ω of all of them has nothing beside these blocks."""
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
        """Return the next `count` policies, one if all would be alike; what was learned stays as it is."""


@runtime_checkable
class LearnsSteps(Protocol):
    """An agent that can learn the steps of many episodes at once."""

    def learn_steps(self, steps: Steps) -> None:
        """Learn these steps, in place of all that was learned before."""


@kernel
def distributions_of(
    plans: PlanSet, step: int, columns: Ints, values: Floats, offered: Ints, distributions: Floats
) -> None:
    """Set π_j(a | s) of each member and action on offer, shape (J, K), in the state with `values` in these `columns`.

    A column is a place among `plans.features`. An action that the plans do not know is worth 0.
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
