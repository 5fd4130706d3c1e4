"""Regression agents for very many sparse features, whose regressions are stored as rows.

Steps that share a regression share its rows, and all their draws are solved at once. The mean of a step starts from the
duals of the same step in the last plan, or of the step above for new rows.
"""

from __future__ import annotations

from functools import partial
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from belated._kernels.jit import entry_point
from belated._kernels.planning import LARGEST_VALUE
from belated._kernels.sparse_ridge import Singles, fill_prior, standard_normals
from belated._util.validate import check_room
from belated.agents._plan_sets import PlanSet
from belated.agents._row_regression import (
    GROWTH,
    MOST_EXACT,
    MOST_ROWS,
    Layout,
    RowRegression,
    RowStep,
    best_values,
    make_layout,
    warm_duals,
)
from belated.agents._sparse import GreedyPolicy, SparseAgent, WeightRule
from belated.errors import InvalidInputError
from belated.types import Algorithm, Floats, Ints, Policy, SimulatorProblem, SparseRows, SparseVector

_NO_ROWS = np.zeros(0, np.int64)


class RowPlan(NamedTuple):
    """Weights of the features seen so far, and the starting point of the next plan."""

    features: Ints
    """Ascending, shape (k,)."""
    weights: Singles
    """Shape (H, k, B·M): a row has the M draws of each block."""
    seeds: Ints
    """One seed per regression, for the prior draws of unseen features."""
    spread: Floats
    """Prior standard deviation of unseen features at each step, shape (H,)."""
    keys: Ints
    """Keys of the rows of all regressions, ascending within each."""
    ends: Ints
    """End of each regression's rows."""
    duals: Singles
    """Duals of the mean, for each row and step of its regression."""


class RowAgent(SparseAgent):
    """An agent for simulators with very many features; its algorithm is a `WeightRule` with `draw_rows`."""

    def __init__(self, settings: Algorithm, problem: SimulatorProblem, rule: WeightRule) -> None:
        super().__init__(settings, problem, shared=rule.shared, most_rows=MOST_ROWS)
        self.rule = rule
        horizon, width = problem.horizon, self.blocks * rule.draws
        self.row_plan: RowPlan = RowPlan(
            _NO_ROWS,
            np.zeros((horizon, 0, width), np.float32),
            np.zeros(self.slots, np.int64),
            np.zeros(horizon),
            _NO_ROWS,
            np.zeros(self.slots, np.int64),
            np.zeros((0, horizon // self.slots), np.float32),
        )
        self.residual = 0.0
        """The largest residual left by the sweeps of the last plan, in units of the noise."""

    @property
    def growth(self) -> float:
        return GROWTH

    def fresh(self) -> RowAgent:
        return RowAgent(self.settings, self.problem, self.rule)

    def draw(self, rng: np.random.Generator) -> float:
        self.row_plan, price, self.residual = self._sweep(rng, self.row_plan)
        return price

    def plan_set(self, rng: np.random.Generator, count: int) -> PlanSet:
        raise InvalidInputError(
            f"features.size must be at most {MOST_EXACT} for sets of plans, got {self.problem.features.size}"
        )

    def _sweep(self, rng: np.random.Generator, before: RowPlan) -> tuple[RowPlan, float, float]:
        """Return a new plan, the cost of one of its steps, and the largest residual; `before` is the last plan."""
        problem, rule, horizon = self.problem, self.rule, self.problem.horizon
        assert rule.draw_rows is not None
        layout = make_layout(self.arrived.states(), problem.actions, joint=problem.joint)
        k, width = layout.features.size, layout.blocks * rule.draws
        check_room("the weights of horizon × draws × blocks × features seen", horizon, width, k)
        high = max(self.reward_range[1], 0.0)
        seeds = rng.integers(2**62, size=self.slots)
        weights, spread = np.zeros((horizon, k, width), np.float32), np.zeros(horizon)
        kept: list[tuple[Ints, Singles]] = []
        spent = residual = 0.0
        above = np.zeros((k * layout.blocks, rule.draws), np.float32)
        for rows, first, last in self.parts():
            slot = first if self.slots > 1 else 0
            regression = RowRegression(
                layout,
                rows,
                slot=slot,
                steps=last - first,
                draws=rule.draws,
                noise=rule.noise,
                ridge=rule.ridge,
                seed=int(seeds[slot]),
            )
            begin = int(before.ends[slot - 1]) if slot else 0
            mine = slice(begin, before.ends[slot])
            duals, new = warm_duals(before.keys[mine], before.duals[mine], regression.keys)
            values = np.zeros(regression.count + 1)  # the last entry is the terminal state, of value 0
            for h in range(last - 1, first - 1, -1):
                left = horizon - h
                if left > 1:
                    best_values(regression.following, weights[h + 1], values[:-1])
                    cap = min(high * (left - 1), LARGEST_VALUE) if rule.capped else LARGEST_VALUE
                    values[:-1] = np.clip(values[:-1], -LARGEST_VALUE, cap)
                # ȳ = Σ(r + γV(s'))/n
                returned = rows.rewards + problem.discount * rows.visits * values[regression.after]
                targets = regression.pair_sums(returned) / regression.visits
                if h + 1 < last:
                    duals[new, h - first] = duals[new, h - first + 1]
                start = np.ascontiguousarray(duals[:, h - first, np.newaxis])
                step = RowStep(h - first, targets, start, partial(self._last, before, layout, h), above)
                above, spread[h] = rule.draw_rows(regression, step, rng)
                duals[:, h - first] = start[:, 0]
                weights[h] = above.reshape(k, width)
            kept.append((regression.keys, duals))
            spent, residual = spent + regression.spent, max(residual, regression.residual)
            spent += (last - first) * layout.blocks * rule.draws * (regression.following.indices.size / 2.0 + k)
        if not np.isfinite(weights).all():
            raise InvalidInputError("action values are not numbers: rewards or settings are too large for floats")
        kept.reverse()
        keys, all_duals = [each for each, _ in kept], [each for _, each in kept]
        plan = RowPlan(
            layout.features,
            weights,
            seeds,
            spread,
            np.concatenate(keys),
            np.cumsum([len(each) for each in keys]),
            np.concatenate(all_duals),
        )
        return plan, spent / horizon, residual

    def _last(self, before: RowPlan, layout: Layout, h: int) -> Singles:
        """Return the weights of step h in the last plan, for the features and blocks of `layout`, shape (kB, M)."""
        blocks, draws = layout.blocks, self.rule.draws
        seed, offset = (before.seeds[h], 0) if self.slots > 1 else (before.seeds[0], h * draws)
        keys = (layout.features[:, np.newaxis] * blocks + np.arange(blocks)).ravel()
        found = np.empty((keys.size, offset + draws), np.float32)
        fill_prior(found, keys, np.ones(keys.size, np.float32), float(before.spread[h]), int(seed))
        found = found[:, offset:].reshape(-1, blocks * draws)
        place = np.minimum(np.searchsorted(before.features, layout.features), max(before.features.size - 1, 0))
        if before.features.size:
            known = before.features[place] == layout.features
            found[known] = before.weights[h, place[known]]
        return np.ascontiguousarray(found.reshape(-1, draws))

    def policy(self, rng: np.random.Generator) -> Policy:
        return RowPolicy(self, int(rng.integers(2**63)))

    def plan_memory(self) -> dict[str, npt.NDArray[Any]]:
        return {f"plan.{name}": np.array(values) for name, values in self.row_plan._asdict().items()}

    def restore_plan(self, memory: dict[str, npt.NDArray[Any]]) -> None:
        plan = RowPlan(*(np.array(memory[f"plan.{name}"]) for name in RowPlan._fields))
        horizon, _, width = self.row_plan.weights.shape
        fits = (
            plan.weights.shape == (horizon, plan.features.size, width)
            and bool((np.diff(plan.features) > 0).all())
            and plan.seeds.shape == plan.ends.shape == (self.slots,)
            and bool((plan.seeds >= 0).all())
            and plan.spread.shape == (horizon,)
            and plan.duals.shape == (len(plan.keys), horizon // self.slots)
            and bool((np.diff(plan.ends, prepend=0) >= 0).all())
            and plan.ends[-1] == len(plan.keys)
        )
        if not fits:
            raise InvalidInputError("memory must hold a plan for this problem")
        self.row_plan = plan


@entry_point
def values_of(
    features: Ints,
    weights: Singles,
    starts: Ints,
    indices: Ints,
    values: Floats,
    seed: int,
    offset: int,
    spread: float,
    q: Floats,
) -> None:
    """Set q_a = max_m φ(s, a)ᵀwᵐ from weights (k, B·M) of one step; `starts` is empty for ψ(s).

    The draws of an unseen feature are the normal numbers of its key from index `offset` on.
    """
    actions, joint = q.size, starts.size > 0
    blocks = 1 if joint else actions
    draws = weights.shape[1] // blocks
    totals, work = np.zeros((actions, draws)), np.empty(offset + draws, np.float32)
    a = 0
    for i in range(indices.size):
        while joint and i >= starts[a + 1]:
            a += 1
        place = np.searchsorted(features, indices[i])
        seen = place < features.size and features[place] == indices[i]
        for block in range(blocks):
            row = a if joint else block
            if seen:
                for m in range(draws):
                    totals[row, m] += values[i] * weights[place, block * draws + m]
            elif spread > 0.0:
                standard_normals(seed, indices[i] * blocks + block, work)
                for m in range(draws):
                    totals[row, m] += values[i] * spread * work[offset + m]
    for action in range(actions):
        q[action] = totals[action].max()


class RowPolicy(GreedyPolicy):
    """Acts on the weights of a `RowAgent`."""

    def __init__(self, agent: RowAgent, seed: int) -> None:
        super().__init__(agent, agent.rule, seed)
        self._plan = agent.row_plan

    def _fill_values(self, step: int, starts: Ints, state: SparseVector | SparseRows) -> None:
        plan, draws = self._plan, self._rule.draws
        seed, offset = (plan.seeds[step], 0) if self._slots > 1 else (plan.seeds[0], step * draws)
        weights, spread = plan.weights[step], float(plan.spread[step])
        values_of(plan.features, weights, starts, state.indices, state.values, int(seed), offset, spread, self._q)
