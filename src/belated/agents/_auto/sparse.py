"""`AutoPSVI` in simulators: what it plans from the stored transitions, and how its policy acts."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import numpy.typing as npt

from belated._kernels.normals import standard_normals
from belated.agents._auto.blocks import linear_values, make_factors, sweep
from belated.agents._auto.changes import Changes
from belated.agents._auto.rule import Rule, hidden_width
from belated.agents._auto.table import Counts, SweepScratch, spread_out, sweep_table
from belated.agents._blocks import cost, make_data
from belated.agents._plan_sets import NO_WIDTHS, PlanSet
from belated.agents._sparse import SparseAgent
from belated.agents._transitions import TERMINAL, Rows, Sparse, Steps, sums
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

#: What is planned before anything has arrived.
NOTHING = Plan(np.zeros(0, np.int64), np.zeros((0, 0), np.int64), np.zeros((0, 0, 0)))


class FeaturePolicy:
    """Acts greedily on the weights of a plan; where no feature has been seen, all actions are alike."""

    def __init__(self, plan: Plan, actions: int, seed: int) -> None:
        self._plan, self._actions = plan, actions
        self._rng = np.random.default_rng(seed)
        self._q = np.zeros(actions)

    def act(self, step: int, state: SparseVector | SparseRows) -> int:
        ties = self._best(step, state)
        return int(ties[0] if ties.size == 1 else ties[int(self._rng.integers(ties.size))])

    def distribution(self, step: int, state: SparseVector | SparseRows) -> Floats:
        shares, ties = np.zeros(self._actions), self._best(step, state)
        shares[ties] = 1.0 / ties.size
        return shares

    def _best(self, step: int, state: SparseVector | SparseRows) -> Ints:
        """Return the actions whose values are the largest."""
        plan, q = self._plan, self._q
        q[:] = 0.0
        if plan.actions.size:
            for feature, value in zip(state.indices.tolist(), state.values.tolist(), strict=True):
                place = int(np.searchsorted(plan.features, feature))
                if place < plan.features.size and plan.features[place] == feature:
                    q[plan.actions[step, place]] += value
        elif plan.weights.size:
            starts = state.starts if isinstance(state, SparseRows) else _NO_ROWS
            linear_values(plan.weights[step], plan.features, starts, state.indices, state.values, q)
        ties: Ints = np.flatnonzero(q == q.max())
        return ties


class AutoSparseAgent(SparseAgent):
    """`AutoPSVI` in a simulator."""

    def __init__(self, settings: AutoPSVI, problem: SimulatorProblem) -> None:
        shared = problem.homogeneous if settings.ablation.shared is None else settings.ablation.shared
        super().__init__(settings, problem, shared=shared, most_rows=settings.ablation.rows)
        settings.rule(problem.horizon, problem.reward_range)  # refuses a range that is not finite
        self._changes = Changes(self.slots, settings.ablation.rows)
        self._plan = NOTHING

    @property
    def _rule(self) -> Rule:
        """The rule, of a range that may have been widened since the last plan."""
        rule: Rule = self.settings.rule(self.problem.horizon, self.reward_range)
        return rule

    def fresh(self) -> AutoSparseAgent:
        return AutoSparseAgent(self.settings, self.problem)

    def policy(self, rng: np.random.Generator) -> FeaturePolicy:
        return FeaturePolicy(self._plan, self.problem.actions, int(rng.integers(2**63)))

    def note(self, trajectory: Trajectory) -> None:
        """Compare the rewards of states that have a feature of their own with those before."""
        if self.problem.joint:
            return
        states: Any = trajectory.states
        span = self._rule.span
        for h, (state, action, reward) in enumerate(
            zip(states, trajectory.actions.tolist(), trajectory.rewards.tolist(), strict=False)
        ):
            slot = trajectory.first + h if self.slots > 1 else 0
            if h == 0 or self.slots > 1:
                self._changes.fade(slot)
            if state.indices.size == 1 and state.values[0] == 1.0:
                self._changes.note(slot, int(state.indices[0]), action, reward, span)

    def note_steps(self, steps: Steps) -> None:
        if self.problem.joint:
            return
        known = steps.rewarded
        lengths, firsts = np.diff(steps.states.starts), steps.states.starts[:-1]
        feature = np.full(len(lengths), -1)
        alone = lengths == 1
        alone[alone] = steps.states.values[firsts[alone]] == 1.0
        feature[alone] = steps.states.indices[firsts[alone]]
        episode = steps.episode[known]
        begins = np.append(True, episode[1:] != episode[:-1]) if self.slots == 1 else np.ones(len(episode), np.bool_)
        slot = steps.step[known] if self.slots > 1 else np.zeros(len(episode), np.int64)
        self._changes.note_all(
            slot,
            feature[steps.state[known]],
            steps.action[known],
            begins[: len(episode)],
            steps.rewards[known],
            self._rule.span,
        )

    def draw(self, rng: np.random.Generator) -> float:
        (self._plan,), price = self._draw(rng, 1)
        return price

    def plan_set(self, rng: np.random.Generator, count: int) -> PlanSet:
        problem, plans = self.problem, self._draw(rng, count)[0]
        features = plans[0].features
        if plans[0].actions.size:  # a table is weights, too: 1 for the action that is taken
            chosen = np.stack([plan.actions for plan in plans])[:, :, np.newaxis]
            weights = (chosen == np.arange(problem.actions)[:, np.newaxis]).astype(np.float64)
        elif plans[0].weights.size:
            weights = np.stack([plan.weights for plan in plans])
        else:
            weights = np.zeros((1, 1, self.blocks, 0))
        caps = np.full(problem.horizon, np.inf)
        return PlanSet(weights[:, :, np.newaxis], features, NO_WIDTHS, caps, 1.0, 0.0, 0.0, False)

    def _draw(self, rng: np.random.Generator, count: int) -> tuple[list[Plan], float]:
        """Return so many plans, made from the same factors, and what a step of one has cost."""
        states, rule = self.arrived.states(), self._rule
        if not len(states.indices):
            return [NOTHING], 0.0
        features, compact = np.unique(states.indices, return_inverse=True)
        states = states._replace(indices=compact.astype(np.int64))
        hidden = hidden_width(rule, self.arrived.outcomes())
        if not self.problem.joint and is_table(states):
            return self._draw_tables(states, features, hidden, rng, count), 0.0
        return self._draw_weights(states, features, hidden, rng, count)

    def _draw_tables(
        self, states: Sparse, features: Ints, hidden: float, rng: np.random.Generator, members: int
    ) -> list[Plan]:
        count, actions, horizon = len(features), self.problem.actions, self.problem.horizon
        values, policy = np.zeros((members, horizon + 1, count)), np.zeros((members, horizon, count), np.int64)
        pairs = count * actions
        draft = SweepScratch(np.zeros(count + 1), np.zeros(pairs), np.zeros((2, pairs)), np.zeros(actions))
        seen, rule = np.ones(count, np.int64), self._rule
        for rows, first, last in self.parts():
            counts = make_counts(rows, states.indices, count, actions)
            counts, known = self._changes.lasting(first if self.slots > 1 else 0, counts, features, actions)
            spread_out(rule, known, hidden, draft.spread)
            for j in range(members):
                sweep_table(rule, counts, draft, seen, first, last, rng, values[j], policy[j])
        return [Plan(features, each, np.zeros((0, 0, 0))) for each in policy]

    def _draw_weights(
        self, states: Sparse, features: Ints, hidden: float, rng: np.random.Generator, count: int
    ) -> tuple[list[Plan], float]:
        horizon, blocks, k = self.problem.horizon, self.blocks, len(features)
        state = np.repeat(np.arange(states.starts.size - 1), np.diff(states.starts))
        norm = float(np.sqrt(np.bincount(state, states.values**2).max())) or 1.0
        weights = np.zeros((count, horizon, blocks, k))
        total = 0.0
        for rows, first, last in self.parts():
            data, phi, visits = make_data(states, rows, self.problem.actions, size=k, joint=self.problem.joint)
            steps = last - first
            factors = make_factors(self._rule, data, phi, visits, norm, hidden, count * steps, rng)
            untried = self._rule.prior / norm * standard_normals(rng, (count * steps, blocks, k))
            for j in range(count):
                own = slice(j * steps, (j + 1) * steps)
                drawn = factors._replace(
                    residual_noise=factors.residual_noise[own], other_noise=factors.other_noise[own]
                )
                sweep(self._rule, data, drawn, first, last, untried[own], weights[j])
            total += cost(data, steps)
        if not np.isfinite(weights).all():
            raise InvalidInputError("action values are not numbers: rewards or features are too large for floats")
        return [Plan(features, np.zeros((0, 0), np.int64), each) for each in weights], total / horizon

    def plan_memory(self) -> dict[str, npt.NDArray[Any]]:
        return {**self._changes.memory(), **{f"plan.{name}": values for name, values in self._plan._asdict().items()}}

    def restore_plan(self, memory: dict[str, npt.NDArray[Any]]) -> None:
        plan = Plan(*(np.array(memory[f"plan.{name}"]) for name in Plan._fields))
        horizon, k = self.problem.horizon, plan.features.size
        shapes = {(0, 0, 0, 0, 0), (horizon, k, 0, 0, 0), (0, 0, horizon, self.blocks, k)}
        if (*plan.actions.shape, *plan.weights.shape) not in shapes:
            raise InvalidInputError("memory must hold a plan that fits the problem")
        self._changes.restore(memory, self.problem.features.size, self.problem.actions)
        self._plan = plan
