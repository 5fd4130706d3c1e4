"""`AutoPSVI` on an environment that can only be sampled: what the agent stores, when it plans, how its policy acts."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from belated._kernels.normals import standard_normals
from belated._util.validate import array, check_generator, choice, flag, indices, integer, refuse
from belated.agents._auto.blocks import best_action, cost, make_data, make_factors, sweep
from belated.agents._auto.changes import Changes
from belated.agents._auto.grouping import is_table, make_counts
from belated.agents._auto.rule import Rule, hidden_width
from belated.agents._auto.store import TERMINAL, Rows, Sparse, Store, with_rewards_in_flight
from belated.agents._auto.table import Draft, spread_out, sweep_table
from belated.errors import InvalidInputError
from belated.sampled import NEWS, SampledProblem, SampledTrajectory, SparseVector
from belated.types import Feedback, Floats, Ints

#: A plan on features is made when the episodes begun since the last one pay for it: so many operations for each step.
BUDGET = 2**14
#: Or when the steps that have arrived are so many times those at the last plan.
GROWTH = 1.1


class Plan(NamedTuple):
    """What a policy is made of: a table of actions, or weights; the other one is empty."""

    features: Ints
    """The features that arrived states have had, ascending, shape (k,)."""
    actions: Ints
    """The action for each step and feature, where every state has a feature of its own, shape (H, k)."""
    weights: Floats
    """w − w₀ for each step, action and feature, shape (H, A, k)."""


#: What is planned before anything has arrived.
NOTHING = Plan(np.zeros(0, np.int64), np.zeros((0, 0), np.int64), np.zeros((0, 0, 0)))


class FeaturePolicy:
    """Acts greedily on the weights of a plan; where no feature has been seen, all actions are alike."""

    def __init__(self, plan: Plan, actions: int, seed: int) -> None:
        self._plan, self._actions = plan, actions
        self._rng = np.random.default_rng(seed)
        self._q = np.zeros(actions)

    def act(self, step: int, state: SparseVector) -> int:
        """Return the action at `step` in the state with the features `state`."""
        plan = self._plan
        if plan.actions.size and state.indices.size == 1:
            place = int(np.searchsorted(plan.features, state.indices[0]))
            if place < plan.features.size and plan.features[place] == state.indices[0]:
                return int(plan.actions[step, place])
        elif plan.weights.size:
            best = int(best_action(plan.weights[step], plan.features, state.indices, state.values, self._q))
            if best >= 0:
                return best
        return int(self._rng.integers(self._actions))


class FeatureLearner:
    """An agent on features: stores late trajectories without repetition, and plans with what has arrived."""

    def __init__(self, settings: Any, problem: SampledProblem) -> None:
        check_problem(problem)
        self.settings, self.problem = settings, problem
        self._rule: Rule = settings.rule(problem.horizon, problem.reward_range)
        shared = problem.homogeneous if settings.shared is None else settings.shared
        self._slots = 1 if shared else problem.horizon
        self._store = Store(settings.rows)
        self._changes = Changes(self._slots, settings.rows)
        self._plan = NOTHING
        self._progress = np.zeros(4)
        """Steps that have arrived, those at the last plan, episodes begun since, and the cost of a plan's step."""

    def plan(self, rng: np.random.Generator) -> FeaturePolicy:
        """Return the policy of the next episode."""
        check_generator("rng", rng)
        self._progress[2] += 1
        arrived, planned, begun, price = self._progress
        if begun * BUDGET >= price or arrived >= GROWTH * planned:
            self._plan, cost_now = self._draw(rng)
            self._progress[1:] = arrived, 0, cost_now
        return FeaturePolicy(self._plan, self.problem.actions, int(rng.integers(2**63)))

    def learn(self, batch: Sequence[Feedback]) -> None:
        """Take in a batch of late trajectories; if one of them is bad, none is learned."""
        for trajectory in [check_trajectory(feedback, self.problem) for feedback in check_batch(batch)]:
            numbers = [self._store.state(state) for state in trajectory.states]
            if trajectory.terminated:
                numbers[-1] = TERMINAL
            steps = zip(trajectory.actions.tolist(), trajectory.rewards.tolist(), strict=True)
            learn = self._store.add if trajectory.news == "all" else self._store.pay
            if trajectory.news != "states":
                self._look_for_changes(trajectory)
            for h, (action, reward) in enumerate(steps):
                slot = trajectory.first + h if self._slots > 1 else 0
                if trajectory.news == "states":
                    self._store.visit(slot, numbers[h], action, numbers[h + 1])
                else:
                    learn(slot, numbers[h], action, numbers[h + 1], reward)
            self._progress[0] += len(trajectory.actions) if trajectory.news != "rewards" else 0
        self._store.thin_out()

    def _look_for_changes(self, trajectory: SampledTrajectory) -> None:
        """Compare the rewards of states that have a feature of their own with those before."""
        for h, (state, action, reward) in enumerate(
            zip(trajectory.states, trajectory.actions.tolist(), trajectory.rewards.tolist(), strict=False)
        ):
            slot = trajectory.first + h if self._slots > 1 else 0
            if h == 0 or self._slots > 1:
                self._changes.fade(slot)
            if state.indices.size == 1 and state.values[0] == 1.0:
                self._changes.note(slot, int(state.indices[0]), action, reward, self._rule.span)

    def _draw(self, rng: np.random.Generator) -> tuple[Plan, float]:
        """Plan all steps, from the last to the first; return the plan and what a step of it has cost."""
        states = self._store.states()
        if not len(states.indices):
            return NOTHING, 0.0
        features, compact = np.unique(states.indices, return_inverse=True)
        states = states._replace(indices=compact.astype(np.int64))
        hidden = hidden_width(self._rule, self._store.outcomes())
        if is_table(states):
            return self._draw_table(states, features, hidden, rng), 0.0
        return self._draw_weights(states, features, hidden, rng)

    def _parts(self) -> Iterable[tuple[Rows, int, int]]:
        """Return, from the last to the first, the rows of each regression and the steps that it is for."""
        largest = self.problem.reward_range[1]
        if self._slots == 1:
            yield with_rewards_in_flight(self._store.rows(), largest), 0, self.problem.horizon
        else:
            for slot in range(self._slots - 1, -1, -1):
                yield with_rewards_in_flight(self._store.rows(slot), largest), slot, slot + 1

    def _draw_table(self, states: Sparse, features: Ints, hidden: float, rng: np.random.Generator) -> Plan:
        count, actions, horizon = len(features), self.problem.actions, self.problem.horizon
        values, policy = np.zeros((horizon + 1, count)), np.zeros((horizon, count), np.int64)
        pairs = count * actions
        draft = Draft(np.zeros(count + 1), np.zeros(pairs), np.zeros((2, pairs)), np.zeros(actions))
        seen = np.ones(count, np.int64)
        for rows, first, last in self._parts():
            counts = make_counts(rows, states.indices, count, actions)
            counts, known = self._changes.lasting(first if self._slots > 1 else 0, counts, features, actions)
            spread_out(self._rule, known, hidden, draft.spread)
            sweep_table(self._rule, counts, draft, seen, first, last, rng, values, policy)
        return Plan(features, policy, np.zeros((0, 0, 0)))

    def _draw_weights(
        self, states: Sparse, features: Ints, hidden: float, rng: np.random.Generator
    ) -> tuple[Plan, float]:
        horizon, actions, k = self.problem.horizon, self.problem.actions, len(features)
        state = np.repeat(np.arange(states.starts.size - 1), np.diff(states.starts))
        norm = float(np.sqrt(np.bincount(state, states.values**2).max())) or 1.0
        weights = np.zeros((horizon, actions, k))
        total = 0.0
        for rows, first, last in self._parts():
            data, phi, visits = make_data(states, rows, actions)
            factors = make_factors(self._rule, data, phi, visits, norm, hidden, last - first, rng)
            untried = self._rule.prior / norm * standard_normals(rng, (last - first, actions, k))
            sweep(self._rule, data, factors, first, last, untried, weights)
            total += cost(data, last - first)
        if not np.isfinite(weights).all():
            raise InvalidInputError("action values are not numbers: rewards or features are too large for floats")
        return Plan(features, np.zeros((0, 0), np.int64), weights), total / horizon

    def memory(self) -> dict[str, npt.NDArray[Any]]:
        """Return what the agent has learned and the plan that it plays, as named arrays."""
        plan = {f"plan.{name}": values for name, values in self._plan._asdict().items()}
        return {**self._store.memory(), **self._changes.memory(), **plan, "progress": self._progress.copy()}

    def restore(self, memory: dict[str, npt.NDArray[Any]]) -> None:
        """Replace what the agent has learned; arrays that do not fit are refused and change nothing."""
        fresh = FeatureLearner(self.settings, self.problem)
        wanted = fresh.memory()
        if set(wanted) != set(memory):
            raise InvalidInputError(f"memory must hold the arrays {sorted(wanted)}, got {sorted(memory)}")
        for name, target in wanted.items():
            given = memory[name]
            if given.ndim != target.ndim or given.dtype != target.dtype or not np.isfinite(given).all():
                raise InvalidInputError(
                    f"memory[{name!r}] must be {target.dtype} with {target.ndim} axes and finite, "
                    f"got {given.dtype} with {given.ndim} axes"
                )
        plan = Plan(*(np.array(memory[f"plan.{name}"]) for name in Plan._fields))
        horizon, actions, k = self.problem.horizon, self.problem.actions, plan.features.size
        shapes = {(0, 0, 0, 0, 0), (horizon, k, 0, 0, 0), (0, 0, horizon, actions, k)}
        if (*plan.actions.shape, *plan.weights.shape) not in shapes or memory["progress"].shape != (4,):
            raise InvalidInputError("memory must hold a plan that fits the problem")
        fresh._store.restore(memory, self.problem.features.size, actions, self._slots)
        fresh._changes.restore(memory, self.problem.features.size, actions)
        self._store, self._changes = fresh._store, fresh._changes
        self._plan, self._progress = plan, np.array(memory["progress"])

    def __repr__(self) -> str:
        """Show the settings and the size of the problem."""
        p = self.problem
        return f"<{self.settings}: {p.features.size} features, {p.actions} actions, H={p.horizon}>"


def check_problem(problem: SampledProblem) -> None:
    """Refuse a problem that does not make sense."""
    integer("problem.actions", problem.actions, at_least=1)
    integer("problem.horizon", problem.horizon, at_least=1)
    integer("problem.features.size", getattr(problem.features, "size", None), at_least=1)
    low, high = array("problem.reward_range", problem.reward_range, (2,)).tolist()
    if low > high:
        raise refuse("problem.reward_range", problem.reward_range, "a pair (low, high) with low <= high")
    flag("problem.homogeneous", problem.homogeneous)


def check_batch(batch: Any) -> list[Feedback]:
    """Return `batch` as a list, refusing what is not made of feedback on sampled trajectories."""
    if not isinstance(batch, Iterable):
        raise refuse("the batch", batch, "a sequence of Feedback")
    feedback = list(batch)
    for each in feedback:
        trajectory: Any = getattr(each, "trajectory", None)
        if not isinstance(each, Feedback) or not isinstance(trajectory, SampledTrajectory):
            raise refuse("the batch", each, "made of Feedback, each with a SampledTrajectory")
    return feedback


def check_trajectory(feedback: Feedback, problem: SampledProblem) -> SampledTrajectory:
    """Return a clean copy of the trajectory, or raise `InvalidInputError`."""
    trajectory: Any = feedback.trajectory
    integer("feedback.episode", feedback.episode, at_least=0)
    actions = indices("trajectory.actions", trajectory.actions, (None,), problem.actions)
    first = integer("trajectory.first", trajectory.first, at_least=0, at_most=problem.horizon - 1)
    integer("the number of steps of the trajectory", actions.size, at_least=1, at_most=problem.horizon - first)
    if len(trajectory.states) != actions.size + 1:
        raise refuse(
            "the number of trajectory.states", len(trajectory.states), f"{actions.size + 1}, one after each step"
        )
    news = choice("trajectory.news", trajectory.news, NEWS)
    rewards = np.zeros(actions.size) if news == "states" else trajectory.rewards
    return SampledTrajectory(
        check_states(trajectory.states, problem.features.size),
        actions,
        array("trajectory.rewards", rewards, (actions.size,)),
        flag("trajectory.terminated", trajectory.terminated),
        first,
        news,
    )


def check_states(states: Sequence[SparseVector], size: int) -> Sequence[SparseVector]:
    """Return the features of the states of a trajectory if they are clean."""
    for step, state in enumerate(states):
        if not isinstance(state, SparseVector) or not _are_arrays(*state):
            raise refuse(
                f"trajectory.states[{step}]", state, "SparseVector, two arrays of one length, int64 and float64"
            )
    numbers = np.concatenate([state.indices for state in states])
    starts = np.cumsum([0, *(state.indices.size for state in states)])
    step_of = np.repeat(np.arange(len(states)), np.diff(starts))
    bad = (numbers < 0) | (numbers >= size)
    bad[1:] |= (numbers[1:] <= numbers[:-1]) & (step_of[1:] == step_of[:-1])
    if bad.any():
        step = int(step_of[bad.argmax()])
        wanted = f"ascending integers in 0..{size - 1}, each once"
        raise refuse(f"trajectory.states[{step}].indices", states[step].indices, wanted)
    finite = np.isfinite(np.concatenate([state.values for state in states]))
    if not finite.all():
        step = int(step_of[finite.argmin()])
        raise refuse(f"trajectory.states[{step}].values", states[step].values, "finite")
    return states


def _are_arrays(numbers: Any, values: Any) -> bool:
    return (
        isinstance(numbers, np.ndarray)
        and isinstance(values, np.ndarray)
        and numbers.dtype == np.int64
        and values.dtype == np.float64
        and numbers.ndim == 1
        and numbers.shape == values.shape
    )
