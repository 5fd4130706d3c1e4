"""`AutoPSVI` on a finite problem with any features φ(s, a): regressions, for each step or for all of them."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from belated._kernels.gaussian import dot, rank_one_update, solve, solve_transposed, solve_two
from belated._kernels.jit import inlined
from belated._kernels.normals import standard_normal
from belated._kernels.planning import linear_values, target_moment
from belated.agents._auto.rule import (
    Rule,
    hidden_width,
    largest,
    note_outcome,
    possible,
    prior_mean,
    random_share,
    residual_width,
    squared_residuals,
    squared_targets,
)
from belated.agents._base import REWARDS, STATES, Arrival
from belated.agents._regression import Table, add_to_factor, cache_aligned, make_table
from belated.types import Floats, Ints, TableProblem

#: Initial scale of the factor of D, which must be invertible.
NEARLY_ZERO = 1e-9
#: Growth factor of the number of arrived steps after which the leverages are recomputed.
REFRESH = 2


class Regressions(NamedTuple):
    """Everything learned from feedback, for each of T regressions: one for all steps, or one for each."""

    factor: Floats
    """U with Ω = UᵀU = Σφφᵀ + λI, shape (T, d, d)."""
    hidden_factor: Floats
    """B with BᵀB = D = Σ n·h·φφᵀ over the pairs, where h is the leverage φᵀΩ⁻¹φ of a visit, shape (T, d, d)."""
    reward_moment: Floats
    """Σφr, shape (T, d)."""
    next_moment: Floats
    """Σφ over visits followed by s', shape (T, S + 1, d); state S is the terminal one."""
    next_rewards: Floats
    """Rewards received on the way to s', shape (T, S + 1)."""
    arrivals: Floats
    """How often s' was reached, shape (T, S + 1)."""
    reward_squares: Floats
    """Σr², shape (T,)."""
    visits: Ints
    """n(s, a), shape (T, S·A)."""
    rewarded: Ints
    """Number of visits whose reward has arrived, shape (T, S·A)."""
    least: Floats
    """The minimum reward at (s, a), shape (T, S·A)."""
    most: Floats
    """The maximum reward at (s, a), shape (T, S·A)."""
    lowest: Ints
    """The smallest next state of (s, a), shape (T, S·A)."""
    kinds: Ints
    """Number of distinct next states of (s, a): 0, 1, or 2 for several, shape (T, S·A)."""
    outcomes: Ints
    """Number of pairs visited at least twice, and how many of those had different outcomes."""
    leverage: Floats
    """Σ n·ℓ over the pairs, as in D, shape (T,)."""
    weighed: Ints
    """Number of trajectories that had arrived when the leverages were computed, and the number so far."""


class LinearWork(NamedTuple):
    """Scratch space, allocated once so that kernels do not allocate."""

    values: Floats
    q: Floats
    gains: Floats
    mean: Floats
    weights: Floats
    noise: Floats


class AutoLinearRecord(NamedTuple):
    """Arrays of one agent on linear features."""

    table: Table
    learned: Regressions
    work: LinearWork
    rule: Rule
    ridge: float
    """λ = λ'R², where R is the largest norm of φ, so that the scale of the features does not matter."""
    prior: float
    """τλ/R."""

    def plan(self, rng: np.random.Generator, start: int, policy: Ints) -> None:
        learned, work, rule = self.learned, self.work, self.rule
        shared, actions = learned.visits.shape[0] == 1, self.table.actions
        if learned.weighed[1] > learned.weighed[0] and learned.weighed[1] >= REFRESH * learned.weighed[0]:
            weigh(self)
        share = random_share(rule, learned.outcomes, 0)
        first, last = (start, start + 1) if rule.horizon == 1 and start >= 0 else (0, self.table.states)
        q = work.q[: (last - first) * actions]
        work.values[rule.horizon] = 0.0
        for h in range(rule.horizon - 1, -1, -1):
            g, left = 0 if shared else h, rule.horizon - h
            v0, low, high = possible(rule, left)
            width, hidden = fit(self, g, left, work.values[h + 1], share, rng)
            draw(self, g, width, hidden, rng)
            linear_values(self.table.columns, work.weights, first * actions, q)
            for s in range(first, last):
                row = q[(s - first) * actions : (s - first + 1) * actions]
                choice = largest(row, rng)
                work.values[h, s] = min(max(v0 + row[choice], low), high)
                policy[h, s] = choice

    def learn(self, arrival: Arrival) -> None:
        """Learn one late trajectory: Ω ← Ω + φφᵀ, the moments, and D ← D + φφᵀ for a new pair."""
        learned, states, x = self.learned, arrival.states, self.work.noise
        shared, terminal = learned.visits.shape[0] == 1, self.table.states
        if arrival.part != REWARDS:
            learned.weighed[1] += 1
        for step in range(arrival.actions.size):
            g = 0 if shared else arrival.first + step
            j, after = states[step] * self.table.actions + arrival.actions[step], states[step + 1]
            if arrival.terminated and step == arrival.actions.size - 1:
                after = terminal
            phi = self.table.rows[j]
            note_visit(learned, g, j, after, arrival.rewards[step], arrival.part)
            if arrival.part != STATES:
                for i in range(phi.size):
                    learned.reward_moment[g, i] += phi[i] * arrival.rewards[step]
            if arrival.part != REWARDS:
                for i in range(phi.size):
                    learned.next_moment[g, after, i] += phi[i]
                add_to_factor(learned.factor[g], phi, 1.0, x)
                if learned.visits[g, j] == 1:  # n·h is at most 1, and close to it at first
                    add_to_factor(learned.hidden_factor[g], phi, 1.0, x)
                    learned.leverage[g] += 1.0

    def settle(self) -> None:
        """Do nothing: `learn` defers no work."""


def make_linear_record(problem: TableProblem, rule: Rule, slots: int) -> AutoLinearRecord:
    states, horizon, d = problem.states, problem.horizon, problem.dimension
    pairs = states * problem.actions
    largest = float(np.linalg.norm(problem.features, axis=-1).max()) or 1.0
    ridge = rule.ridge * largest**2
    learned = Regressions(
        factor=np.tile(math.sqrt(ridge) * np.eye(d), (slots, 1, 1)),
        hidden_factor=np.tile(NEARLY_ZERO * largest * np.eye(d), (slots, 1, 1)),
        reward_moment=np.zeros((slots, d)),
        next_moment=np.zeros((slots, states + 1, d)),
        next_rewards=np.zeros((slots, states + 1)),
        arrivals=np.zeros((slots, states + 1)),
        reward_squares=np.zeros(slots),
        visits=np.zeros((slots, pairs), np.int64),
        rewarded=np.zeros((slots, pairs), np.int64),
        least=np.zeros((slots, pairs)),
        most=np.zeros((slots, pairs)),
        lowest=np.zeros((slots, pairs), np.int64),
        kinds=np.zeros((slots, pairs), np.int64),
        outcomes=np.zeros(2, np.int64),
        leverage=np.zeros(slots),
        weighed=np.zeros(2, np.int64),
    )
    work = LinearWork(
        values=np.zeros((horizon + 1, states)),
        q=cache_aligned(pairs),
        gains=np.zeros(states + 1),
        mean=np.zeros(d),
        weights=np.zeros(d),
        noise=np.zeros(d),
    )
    return AutoLinearRecord(make_table(problem), learned, work, rule, ridge, rule.prior * ridge / largest)


@inlined
def note_visit(learned: Regressions, g: int, j: int, after: int, reward: float, part: int) -> None:
    """Count a visit of the pair `j`, and record whether its outcomes differ."""
    was_random = learned.least[g, j] < learned.most[g, j] or learned.kinds[g, j] > 1
    visits = 0
    if part != STATES:
        fresh = learned.rewarded[g, j] == 0
        learned.rewarded[g, j] += 1
        learned.least[g, j] = reward if fresh else min(learned.least[g, j], reward)
        learned.most[g, j] = reward if fresh else max(learned.most[g, j], reward)
        learned.next_rewards[g, after] += reward
        learned.reward_squares[g] += reward * reward
    if part != REWARDS:
        fresh = learned.visits[g, j] == 0
        learned.kinds[g, j] = 1 if fresh or (learned.kinds[g, j] == 1 and learned.lowest[g, j] == after) else 2
        learned.lowest[g, j] = after if fresh else min(learned.lowest[g, j], after)
        learned.visits[g, j] += 1
        visits = learned.visits[g, j]
        learned.arrivals[g, after] += 1.0
    random = learned.least[g, j] < learned.most[g, j] or learned.kinds[g, j] > 1
    note_outcome(visits, was_random, random, learned.outcomes)


@inlined
def weigh(agent: AutoLinearRecord) -> None:
    """Recompute D = Σ n·h·φφᵀ with the current leverages h = φᵀΩ⁻¹φ."""
    learned, x = agent.learned, agent.work.noise
    nearly_zero = NEARLY_ZERO * math.sqrt(agent.ridge / agent.rule.ridge)
    for g in range(learned.visits.shape[0]):
        factor = learned.hidden_factor[g]
        learned.leverage[g] = 0.0
        for i in range(x.size):
            for k in range(x.size):
                factor[i, k] = nearly_zero if i == k else 0.0
        for j in range(learned.visits.shape[1]):
            n = learned.visits[g, j]
            if n == 0:
                continue
            phi = agent.table.rows[j]
            for i in range(x.size):
                x[i] = phi[i]
            solve_transposed(learned.factor[g], x)
            weight = math.sqrt(n * dot(x, x))
            learned.leverage[g] += weight * weight
            for i in range(x.size):
                x[i] = weight * phi[i]
            rank_one_update(factor, x)
    learned.weighed[0] = learned.weighed[1]


@inlined
def fit(
    agent: AutoLinearRecord, g: int, left: int, following: Floats, share: float, rng: np.random.Generator
) -> tuple[float, float]:
    """Set `mean` to ŵ = Ω⁻¹Σφy for y = r + γV(s') − v₀ with `left` steps to go, `weights` to U⁻¹z₁; return s and σ₀."""
    learned, work, mean = agent.learned, agent.work, agent.work.mean
    v0 = prior_mean(agent.rule, left)
    steps = 0.0
    for s in range(following.size):
        work.gains[s] = agent.rule.discount * following[s] - v0
        steps += learned.arrivals[g, s]
    work.gains[following.size] = -v0  # the terminal state has value 0
    steps += learned.arrivals[g, following.size]
    target_moment(learned.reward_moment[g], learned.next_moment[g], work.gains, 1.0, mean)
    solve_transposed(learned.factor[g], mean)
    fitted = dot(mean, mean)  # ŵᵀΣφy
    for i in range(mean.size):
        work.weights[i] = standard_normal(rng)
    solve_two(learned.factor[g], mean, work.weights)
    fitted += agent.ridge * dot(mean, mean)
    squares = squared_targets(learned.reward_squares[g], learned.next_rewards[g], learned.arrivals[g], work.gains)
    residuals = squared_residuals(squares, fitted)
    hidden = hidden_width(agent.rule, share, residuals, steps - learned.leverage[g])
    return residual_width(agent.rule, residuals, steps), hidden


@inlined
def draw(agent: AutoLinearRecord, g: int, width: float, hidden: float, rng: np.random.Generator) -> None:
    """Set `weights` from U⁻¹z₁ to ŵ + s(I − λΩ⁻¹)U⁻¹z₁ + Ω⁻¹(σ₀Bᵀz₂ + τλz₃)."""
    mean, weights, noise = agent.work.mean, agent.work.weights, agent.work.noise
    factor, hidden_factor = agent.learned.factor[g], agent.learned.hidden_factor[g]
    for i in range(weights.size):
        weights[i] *= width
        noise[i] = -agent.ridge * weights[i]
    for k in range(noise.size):
        share, row, rest = hidden * standard_normal(rng), hidden_factor[k, k:], noise[k:]
        for i in range(rest.size):
            rest[i] += share * row[i]
    for i in range(noise.size):
        noise[i] += agent.prior * standard_normal(rng)
    solve_transposed(factor, noise)
    solve(factor, noise)
    for i in range(weights.size):
        weights[i] += mean[i] + noise[i]
