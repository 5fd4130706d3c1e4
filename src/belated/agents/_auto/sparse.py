"""`AutoPSVI` in simulators: what it plans from the stored transitions, and how its policy acts."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import numpy.typing as npt

from belated._kernels.normals import standard_normals
from belated.agents._auto.blocks import best_action, make_factors, sweep
from belated.agents._auto.changes import Changes
from belated.agents._auto.rule import Returns, Rule, random_share
from belated.agents._auto.table import Counts, SweepScratch, spread_out
from belated.agents._auto.table import sweep as sweep_table
from belated.agents._blocks import cost, make_data
from belated.agents._sparse import SparseAgent
from belated.agents._transitions import TERMINAL, Rows, Sparse, sums
from belated.errors import InvalidInputError
from belated.types import Floats, Ints, SimulatorProblem, SparseRows, SparseVector, Trajectory

if TYPE_CHECKING:
    from belated.agents._auto_psvi import AutoPSVI


def is_table(states: Sparse) -> bool:
    """Tell whether every state has a single feature, and that is 1."""
    return bool((np.diff(states.starts) == 1).all() and (states.values == 1.0).all())


def make_counts(rows: Rows, feature: Ints, states: int, actions: int) -> Counts:
    """Return the counts of a table of so many `states`, where `feature` is the row of the table for each state."""
    pair = feature[rows.state] * actions + rows.action
    after = np.where(rows.after == TERMINAL, states, feature[rows.after])
    order = np.lexsort((after, pair))
    pair, after = pair[order], after[order]
    rewards, visits = rows.rewards[order], rows.visits[order]
    kinds = np.bincount(pair, minlength=states * actions)
    place = np.arange(len(pair)) - np.repeat(np.cumsum(kinds) - kinds, kinds)
    random = kinds > 1
    random[pair[(rows.least < rows.most)[order]]] = True
    shape = (states * actions, max(int(kinds.max(initial=0)), 1))
    followed, often = np.zeros(shape, np.int32), np.zeros(shape, np.int32)
    followed[pair, place], often[pair, place] = after, visits
    return Counts(
        visits=sums(pair, visits, states * actions).astype(np.int64),
        reward_sums=sums(pair, rewards, states * actions),
        kinds=kinds.astype(np.int64),
        after=followed,
        often=often,
        next_rewards=sums(after, rewards, states + 1),
        arrivals=sums(after, visits, states + 1),
        reward_squares=float(rows.squares.sum()),
        random=random.astype(np.int64),
        lines=np.zeros((3, states * actions)),
    )


def widened(returns: Returns, rewards: Floats, *, whole: bool) -> Returns:
    """Return the range of `returns` with those of a trajectory, which may be a `whole` episode.

    >>> widened(Returns(), np.array([-1.0, 3.0, -2.0]), whole=True)
    Returns(worst=-2.0, best=1.0, worst_mean=0.0, best_mean=0.0)
    """
    to_go = np.cumsum(rewards[::-1])
    mean = float(rewards.mean()) if whole else 0.0
    return Returns(
        min(returns.worst, float(to_go.min())),
        max(returns.best, float(to_go.max())),
        min(returns.worst_mean, mean),
        max(returns.best_mean, mean),
    )


class Plan(NamedTuple):
    """What a policy is made of: a table of actions, or weights; the other one is empty."""

    features: Ints
    """The features that arrived states have had, ascending, shape (k,)."""
    actions: Ints
    """The action for each step and feature, where every state has a feature of its own, shape (H, k)."""
    weights: Floats
    """w − w₀ for each step, action and feature, shape (H, A, k)."""


_NO_ROWS = np.zeros(0, np.int64)

#: What is planned before anything has arrived.
NOTHING = Plan(np.zeros(0, np.int64), np.zeros((0, 0), np.int64), np.zeros((0, 0, 0)))


class FeaturePolicy:
    """Acts greedily on the weights of a plan; where no feature has been seen, all actions are alike."""

    def __init__(self, plan: Plan, actions: int, seed: int) -> None:
        self._plan, self._actions = plan, actions
        self._rng = np.random.default_rng(seed)
        self._q = np.zeros(actions)

    def act(self, step: int, state: SparseVector | SparseRows) -> int:
        plan = self._plan
        if plan.actions.size and state.indices.size == 1:
            place = int(np.searchsorted(plan.features, state.indices[0]))
            if place < plan.features.size and plan.features[place] == state.indices[0]:
                return int(plan.actions[step, place])
        elif plan.weights.size:
            starts = state.starts if isinstance(state, SparseRows) else _NO_ROWS
            weights = plan.weights[step]
            best = int(best_action(weights, plan.features, starts, state.indices, state.values, self._q))
            if best >= 0:
                return best
        return int(self._rng.integers(self._actions))


class AutoSparseAgent(SparseAgent):
    """`AutoPSVI` in a simulator."""

    def __init__(self, settings: AutoPSVI, problem: SimulatorProblem) -> None:
        shared = problem.homogeneous if settings.ablation.shared is None else settings.ablation.shared
        super().__init__(settings, problem, shared=shared, most_rows=settings.ablation.rows)
        settings.rule(problem, problem.reward_range)  # refuses a range that is not finite
        self._returns = Returns()
        self._changes = Changes(self.slots, settings.ablation.rows)
        self._plan = NOTHING

    @property
    def _rule(self) -> Rule:
        """The rule, of a range that may have been widened since the last plan."""
        returns = self._returns if self.problem.learned_range else None
        rule: Rule = self.settings.rule(self.problem, self.reward_range, returns)
        return rule

    def fresh(self) -> AutoSparseAgent:
        return AutoSparseAgent(self.settings, self.problem)

    def policy(self, rng: np.random.Generator) -> FeaturePolicy:
        return FeaturePolicy(self._plan, self.problem.actions, int(rng.integers(2**63)))

    def note(self, trajectory: Trajectory) -> None:
        """Note the returns, and compare the rewards of states that have a feature of their own with those before."""
        whole = trajectory.first == 0 and (trajectory.terminated or len(trajectory.rewards) == self.problem.horizon)
        self._returns = widened(self._returns, trajectory.rewards, whole=whole)
        if self.problem.joint:
            return
        states: Any = trajectory.states
        span = self._rule.span if self._rule.forgetting else 0.0
        for h, (state, action, reward) in enumerate(
            zip(states, trajectory.actions.tolist(), trajectory.rewards.tolist(), strict=False)
        ):
            slot = trajectory.first + h if self.slots > 1 else 0
            if h == 0 or self.slots > 1:
                self._changes.fade(slot)
            if state.indices.size == 1 and state.values[0] == 1.0:
                self._changes.note(slot, int(state.indices[0]), action, trajectory.first + h, reward, span)

    def draw(self, rng: np.random.Generator) -> float:
        states, rule = self.store.states(), self._rule
        if not len(states.indices):
            self._plan = NOTHING
            return 0.0
        features, compact = np.unique(states.indices, return_inverse=True)
        states = states._replace(indices=compact.astype(np.int64))
        share = random_share(rule, self.store.outcomes())
        if not self.problem.joint and is_table(states):
            self._plan = self._draw_table(states, features, share, rng)
            return 0.0
        self._plan, price = self._draw_weights(states, features, share, rng)
        return price

    def _draw_table(self, states: Sparse, features: Ints, share: float, rng: np.random.Generator) -> Plan:
        count, actions, horizon = len(features), self.problem.actions, self.problem.horizon
        values, policy = np.zeros((horizon + 1, count)), np.zeros((horizon, count), np.int64)
        pairs = count * actions
        draft = SweepScratch(np.zeros(count + 1), np.zeros(pairs), np.zeros((3, pairs)), np.zeros(actions))
        seen, rule = np.ones(count, np.int64), self._rule
        for rows, first, last in self.parts():
            counts, slot = make_counts(rows, states.indices, count, actions), first if self.slots > 1 else 0
            counts, known = self._changes.lasting(slot, rule, counts, features, actions)
            spread_out(rule, known, counts.random, actions, share, rng, draft.spread)
            sweep_table(rule, counts, draft, seen, first, last, rng, values, policy)
        return Plan(features, policy, np.zeros((0, 0, 0)))

    def _draw_weights(
        self, states: Sparse, features: Ints, share: float, rng: np.random.Generator
    ) -> tuple[Plan, float]:
        horizon, blocks, k = self.problem.horizon, self.blocks, len(features)
        state = np.repeat(np.arange(states.starts.size - 1), np.diff(states.starts))
        norm = float(np.sqrt(np.bincount(state, states.values**2).max())) or 1.0
        weights = np.zeros((horizon, blocks, k))
        total = 0.0
        for rows, first, last in self.parts():
            data, phi, visits = make_data(states, rows, self.problem.actions, size=k, joint=self.problem.joint)
            factors = make_factors(self._rule, data, phi, visits, norm, last - first, rng)
            untried = self._rule.prior / norm * standard_normals(rng, (last - first, blocks, k))
            sweep(self._rule, data, factors, share, first, last, untried, weights)
            total += cost(data, last - first)
        if not np.isfinite(weights).all():
            raise InvalidInputError("action values are not numbers: rewards or features are too large for floats")
        return Plan(features, np.zeros((0, 0), np.int64), weights), total / horizon

    def plan_memory(self) -> dict[str, npt.NDArray[Any]]:
        plan = {f"plan.{name}": values for name, values in self._plan._asdict().items()}
        return {**self._changes.memory(), **plan, "returns": np.array(self._returns)}

    def restore_plan(self, memory: dict[str, npt.NDArray[Any]]) -> None:
        plan = Plan(*(np.array(memory[f"plan.{name}"]) for name in Plan._fields))
        horizon, k = self.problem.horizon, plan.features.size
        shapes = {(0, 0, 0, 0, 0), (horizon, k, 0, 0, 0), (0, 0, horizon, self.blocks, k)}
        if (*plan.actions.shape, *plan.weights.shape) not in shapes:
            raise InvalidInputError("memory must hold a plan that fits the problem")
        returns = memory["returns"].tolist()
        if len(returns) != len(Returns._fields) or max(returns[0::2]) > 0.0 or min(returns[1::2]) < 0.0:
            raise InvalidInputError("memory['returns'] must be the worst and the best returns and means, 0 included")
        self._changes.restore(memory, self.problem.features.size, self.problem.actions)
        self._returns = Returns(*returns)
        self._plan = plan
