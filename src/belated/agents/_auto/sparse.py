"""`AutoPSVI` in simulators: what it plans from the stored transitions, and how its policy acts."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import numpy.typing as npt

from belated._kernels.normals import standard_normals
from belated.agents._auto.blocks import best_action, make_factors, sweep
from belated.agents._auto.changes import Changes
from belated.agents._auto.choice import Choice, numbers_of
from belated.agents._auto.rule import Rule, hidden_width
from belated.agents._auto.table import Counts, SweepScratch, fill_spread
from belated.agents._auto.table import sweep as sweep_table
from belated.agents._blocks import cost, make_data
from belated.agents._first_map import EncodedPolicy
from belated.agents._sparse import SparseAgent
from belated.agents._transitions import TERMINAL, Rows, Sparse, sums, with_rewards_in_flight
from belated.errors import InvalidInputError
from belated.features import Adaptive, Distinct
from belated.types import FeatureMap, Floats, Ints, Policy, SimulatorProblem, SparseRows, SparseVector, Trajectory

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
        steps=float(visits.sum()),
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
#: Numbers of an observation beyond which fewer transitions are kept, so that they take no more room.
LONG = 32

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


def most_rows(rows: int, problem: SimulatorProblem) -> int:
    """Return how many transitions are kept: fewer of observations that have many numbers."""
    if not isinstance(problem.features, Adaptive):
        return rows
    return max(1, rows * LONG // max(problem.features.size, LONG))


class AutoSparseAgent(SparseAgent):
    """`AutoPSVI` in a simulator."""

    def __init__(self, settings: AutoPSVI, problem: SimulatorProblem) -> None:
        shared = problem.homogeneous if settings.ablation.shared is None else settings.ablation.shared
        super().__init__(settings, problem, shared=shared, most_rows=most_rows(settings.ablation.rows, problem))
        settings.rule(problem.horizon, problem.reward_range)  # refuses a range that is not finite
        self._changes = Changes(self.slots, settings.ablation.rows)
        self._plan = NOTHING
        self._choice = Choice(problem.features, problem) if isinstance(problem.features, Adaptive) else None

    @property
    def features(self) -> FeatureMap:
        """The feature map that the last plan was made with."""
        return self.problem.features if self._choice is None else self._choice.map

    @property
    def _rule(self) -> Rule:
        """The rule, of a range that may have been widened since the last plan."""
        rule: Rule = self.settings.rule(self.problem.horizon, self.reward_range)
        return rule

    def fresh(self) -> AutoSparseAgent:
        return AutoSparseAgent(self.settings, self.problem)

    def policy(self, rng: np.random.Generator) -> Policy:
        policy = FeaturePolicy(self._plan, self.problem.actions, int(rng.integers(2**63)))
        return policy if self._choice is None else EncodedPolicy(policy, self._choice.map)

    def parts(self) -> Iterator[tuple[Rows, int, int]]:
        for rows, first, last in super().parts():
            yield rows if self._choice is None else self._choice.transitions(self._numbers(), rows), first, last

    def _numbers(self) -> Floats:
        """Return the observations that have arrived, where they are stored as they are."""
        return numbers_of(self.store.states(), self.problem.features.size)

    def _states(self) -> Sparse:
        """Return the features of all states that have arrived."""
        if self._choice is None:
            return self.store.states()
        if not len(self.store):
            return Sparse(_NO_ROWS, _NO_ROWS, np.zeros(0))
        numbers = self._numbers()
        high = self.reward_range[1]
        self._choice.follow(numbers, with_rewards_in_flight(self.store.rows(), high), self.progress.arrived)
        return self._choice.encoded(numbers)

    def note(self, trajectory: Trajectory) -> None:
        """Compare the rewards of states that have a feature of their own with those before."""
        if self.problem.joint:
            return
        states: Any = trajectory.states if self._choice is None else self._choice.told_apart(trajectory)
        span = self._rule.span
        for h, (state, action, reward) in enumerate(
            zip(states, trajectory.actions.tolist(), trajectory.rewards.tolist(), strict=False)
        ):
            slot = trajectory.first + h if self.slots > 1 else 0
            if h == 0 or self.slots > 1:
                self._changes.fade(slot)
            if state.indices.size == 1 and state.values[0] == 1.0:
                self._changes.note(slot, int(state.indices[0]), action, reward, span)

    def draw(self, rng: np.random.Generator) -> float:
        states, rule = self._states(), self._rule
        if not len(states.indices):
            self._plan = NOTHING
            return 0.0
        features, compact = np.unique(states.indices, return_inverse=True)
        states = states._replace(indices=compact.astype(np.int64))
        hidden = hidden_width(rule, self.store.outcomes())
        if not self.problem.joint and is_table(states):
            self._plan = self._draw_table(states, features, hidden, rng)
            return 0.0
        self._plan, price = self._draw_weights(states, features, hidden, rng)
        return price

    def _draw_table(self, states: Sparse, features: Ints, hidden: float, rng: np.random.Generator) -> Plan:
        count, actions, horizon = len(features), self.problem.actions, self.problem.horizon
        values, policy = np.zeros((horizon + 1, count)), np.zeros((horizon, count), np.int64)
        pairs = count * actions
        draft = SweepScratch(np.zeros(count + 1), np.zeros(pairs), np.zeros((2, pairs)), np.zeros(actions))
        seen = np.ones(count, np.int64)
        for rows, first, last in self.parts():
            counts = make_counts(rows, states.indices, count, actions)
            counts, known = self._changes.lasting(first if self.slots > 1 else 0, counts, features, actions)
            fill_spread(self._rule, known, hidden, draft.spread)
            sweep_table(self._rule, counts, draft, seen, first, last, rng, values, policy)
        return Plan(features, policy, np.zeros((0, 0, 0)))

    def _draw_weights(
        self, states: Sparse, features: Ints, hidden: float, rng: np.random.Generator
    ) -> tuple[Plan, float]:
        horizon, blocks, k = self.problem.horizon, self.blocks, len(features)
        state = np.repeat(np.arange(states.starts.size - 1), np.diff(states.starts))
        norm = float(np.sqrt(np.bincount(state, states.values**2).max())) or 1.0
        weights = np.zeros((horizon, blocks, k))
        total = 0.0
        for rows, first, last in self.parts():
            data, phi, visits = make_data(states, rows, self.problem.actions, size=k, joint=self.problem.joint)
            factors = make_factors(self._rule, data, phi, visits, norm, hidden, last - first, rng)
            untried = self._rule.prior / norm * standard_normals(rng, (last - first, blocks, k))
            sweep(self._rule, data, factors, first, last, untried, weights)
            total += cost(data, last - first)
        if not np.isfinite(weights).all():
            raise InvalidInputError("action values are not numbers: rewards or features are too large for floats")
        return Plan(features, np.zeros((0, 0), np.int64), weights), total / horizon

    def plan_memory(self) -> dict[str, npt.NDArray[Any]]:
        plan = {f"plan.{name}": values for name, values in self._plan._asdict().items()}
        return {**self._changes.memory(), **plan, **({} if self._choice is None else self._choice.memory())}

    def restore_plan(self, memory: dict[str, npt.NDArray[Any]]) -> None:
        plan = Plan(*(np.array(memory[f"plan.{name}"]) for name in Plan._fields))
        horizon, k = self.problem.horizon, plan.features.size
        shapes = {(0, 0, 0, 0, 0), (horizon, k, 0, 0, 0), (0, 0, horizon, self.blocks, k)}
        if (*plan.actions.shape, *plan.weights.shape) not in shapes:
            raise InvalidInputError("memory must hold a plan that fits the problem")
        size = self.problem.features.size if self._choice is None else Distinct().size
        self._changes.restore(memory, size, self.problem.actions)
        if self._choice is not None:
            self._choice.restore(memory)
        self._plan = plan

    def __repr__(self) -> str:
        return f"<{self.settings}: {self.problem}, features: {self.features}>"
