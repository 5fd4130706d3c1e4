"""`AutoPSVI` in simulators: planning from the stored transitions, and its policies."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import numpy.typing as npt

from belated._kernels.normals import standard_normals
from belated._kernels.sparse_ridge import Singles
from belated._util.validate import check_room
from belated.agents._auto.aliasing import ENDED, Aliasing
from belated.agents._auto.blocks import linear_values, make_factors, sweep
from belated.agents._auto.changes import Changes
from belated.agents._auto.choice import LONGEST, Choice, numbers_of
from belated.agents._auto.members import LANES, sweep_together
from belated.agents._auto.rows import plan_by_rows
from belated.agents._auto.rule import Returns, Rule, random_share
from belated.agents._auto.table import Counts, SweepScratch, spread_out, sweep_table
from belated.agents._blocks import cost, make_data, transposed
from belated.agents._first_map import EncodedPolicy
from belated.agents._plan_sets import NO_WIDTHS, PlanSet
from belated.agents._row_regression import GROWTH, MOST_EXACT, MOST_ROWS, make_layout
from belated.agents._sparse import SparseAgent
from belated.agents._transitions import TERMINAL, Rows, Sparse, Steps, sums, with_rewards_in_flight
from belated.errors import InvalidInputError
from belated.features import Adaptive, Distinct, Network, OneHot
from belated.types import FeatureMap, Floats, Ints, Policy, SimulatorProblem, SparseRows, SparseVector, Trajectory

if TYPE_CHECKING:
    from belated.agents._auto_psvi import AutoPSVI


def is_table(states: Sparse) -> bool:
    """Whether the features of every state are one-hot."""
    return bool((np.diff(states.starts) == 1).all() and (states.values == 1.0).all())


def make_counts(rows: Rows, feature: Ints, states: int, actions: int) -> Counts:
    """Return the counts of a table with this number of `states`; `feature` is each state's row of the table."""
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
    """Return `returns` widened by those of a trajectory, which may be a `whole` episode.

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


_NO_ROWS = np.zeros(0, np.int64)


class Plan(NamedTuple):
    """The data of a policy: a table of actions, or weights; the other one is empty."""

    features: Ints
    """The features that have occurred, ascending, shape (k,)."""
    actions: Ints
    """The action for each step and feature, if features are one-hot, shape (H, k)."""
    weights: Floats
    """w − w₀ for each of the last L steps, action and feature, shape (L, A, k); earlier steps use the first."""
    keys: Ints = _NO_ROWS
    """Keys of the rows of all regressions, if these are stored as rows, ascending within each."""
    ends: Ints = _NO_ROWS
    """End of each regression's rows."""
    duals: Singles = np.zeros((0, 0), np.float32)
    """Duals of each row and step of its regression, from which the next plan starts."""


#: Length of an observation beyond which fewer transitions are stored, to bound memory.
LONG = 32

#: The plan before anything has arrived.
NOTHING = Plan(np.zeros(0, np.int64), np.zeros((0, 0), np.int64), np.zeros((0, 0, 0)))


class FeaturePolicy:
    """Acts greedily on the weights of a plan; uniformly in states without known features."""

    def __init__(self, plan: Plan, problem: SimulatorProblem, seed: int) -> None:
        self._plan, self._actions = plan, problem.actions
        self._ahead = problem.horizon - max(len(plan.actions), len(plan.weights))
        """Number of steps before the last L."""
        self._rng = np.random.default_rng(seed)
        self._q = np.zeros(problem.actions)

    def act(self, step: int, state: SparseVector | SparseRows) -> int:
        ties = self._best(step, state)
        return ties[0] if len(ties) == 1 else ties[int(self._rng.integers(len(ties)))]

    def distribution(self, step: int, state: SparseVector | SparseRows) -> Floats:
        shares, ties = np.zeros(self._actions), self._best(step, state)
        shares[ties] = 1.0 / len(ties)
        return shares

    def _best(self, step: int, state: SparseVector | SparseRows) -> list[int]:
        """Return the maximising actions."""
        plan, q, step = self._plan, self._q, max(step - self._ahead, 0)
        q[:] = 0.0
        if plan.actions.size:
            for feature, value in zip(state.indices.tolist(), state.values.tolist(), strict=True):
                place = int(np.searchsorted(plan.features, feature))
                if place < plan.features.size and plan.features[place] == feature:
                    q[plan.actions[step, place]] += value
        elif plan.weights.size:
            starts = state.starts if isinstance(state, SparseRows) else _NO_ROWS
            linear_values(plan.weights[step], plan.features, starts, state.indices, state.values, q)
        values = q.tolist()  # lists are faster than small arrays
        best = max(values)
        return [action for action, value in enumerate(values) if value == best]


class NetworkPolicy:
    """Acts greedily on one draw of the output layer of a network, at every step."""

    def __init__(self, network: Network, weights: Floats) -> None:
        self._network, self._weights, self._offsets = network, weights[:, :-1], weights[:, -1]

    def act(self, step: int, state: SparseVector) -> int:
        return int((self._weights @ self._network.hidden(state.values) + self._offsets).argmax())


def most_rows(rows: int, problem: SimulatorProblem) -> int:
    """Return the maximum number of stored transitions: fewer for long observations or very many features."""
    if not isinstance(problem.features, Adaptive):
        many = problem.features.size > MOST_EXACT and not isinstance(problem.features, OneHot)
        return min(rows, MOST_ROWS) if many else rows
    return max(1, rows * LONG // max(problem.features.size, LONG))


class AutoSparseAgent(SparseAgent):
    """`AutoPSVI` in a simulator."""

    def __init__(self, settings: AutoPSVI, problem: SimulatorProblem) -> None:
        shared = problem.homogeneous if settings.ablation.shared is None else settings.ablation.shared
        super().__init__(settings, problem, shared=shared, most_rows=most_rows(settings.ablation.rows, problem))
        settings.rule(problem, problem.reward_range)  # rejects an infinite range
        self._returns = Returns()
        self._changes = Changes(self.slots, settings.ablation.rows)
        self._aliasing = Aliasing(settings.ablation.rows)
        self._plan = NOTHING
        self.residual = 0.0
        """The largest residual left by the sweeps of the last plan, in units of the noise."""
        self._choice = Choice(problem.features, problem) if isinstance(problem.features, Adaptive) else None

    @property
    def features(self) -> FeatureMap:
        """The feature map of the last plan."""
        return self.problem.features if self._choice is None else self._choice.map

    @property
    def aliased(self) -> bool:
        """Whether the observations of a table were found not to identify states."""
        return self._aliasing.found

    @property
    def _ahead(self) -> int:
        """L, the number of steps planned: on a network, at most its effective horizon."""
        learned = isinstance(self.features, Network) and self.slots == 1
        return min(self.problem.horizon, LONGEST) if learned else self.problem.horizon

    @property
    def _rule(self) -> Rule:
        """The rule for the current range, which may have been widened since the last plan."""
        returns = self._returns if self.problem.learned_range else None
        rule: Rule = self.settings.rule(self.problem, self.reward_range, returns, self._ahead)
        return rule

    @property
    def growth(self) -> float:
        return GROWTH if self._plan.keys.size else super().growth

    def fresh(self) -> AutoSparseAgent:
        return AutoSparseAgent(self.settings, self.problem)

    def policy(self, rng: np.random.Generator) -> Policy:
        policy = FeaturePolicy(self._plan, self.problem, int(rng.integers(2**63)))
        if self._choice is None:
            return policy
        if self._choice.plays_values and isinstance(self._choice.map, Network):
            return NetworkPolicy(self._choice.map, self._plan.weights[0])
        return EncodedPolicy(policy, self._choice.map)

    def parts(self) -> Iterator[tuple[Rows, int, int]]:
        for rows, first, last in super().parts():
            if self._choice is None:
                yield rows, first, last
            else:
                yield self._choice.transitions(self._numbers(), rows), first, min(last, first + self._ahead)

    def _states(self) -> Sparse:
        """Return the features of all states that have arrived."""
        if self._choice is None:
            return self.arrived.states()
        return self._choice.encoded(self._numbers())

    def _bounds(self) -> tuple[float, float]:
        """Return the minimum and maximum possible value, with a network's discount.

        If the range of rewards is learned, they are limited to twice the returns seen.
        """
        assert self._choice is not None
        (low, high), seen, steps = self.reward_range, self._returns, self._choice.duration
        least, most = min(low, 0.0) * steps, max(high, 0.0) * steps
        if self.problem.learned_range:
            least = max(least, 2.0 * min(seen.worst, seen.worst_mean * steps))
            most = min(most, 2.0 * max(seen.best, seen.best_mean * steps))
        return least, most

    def _numbers(self) -> Floats:
        """Return the raw observations that have arrived."""
        return numbers_of(self.store.states(), self.problem.features.size)

    def note(self, trajectory: Trajectory) -> None:
        """Record the returns, and compare the rewards of one-hot states with earlier ones."""
        whole = trajectory.first == 0 and (trajectory.terminated or len(trajectory.rewards) == self.problem.horizon)
        self._returns = widened(self._returns, trajectory.rewards, whole=whole)
        if self.problem.joint:
            return
        states: Any = trajectory.states if self._choice is None else self._choice.told_apart(trajectory)
        if self.slots == 1 and all(state.indices.size == 1 for state in states) and len(states) > 1:
            features = np.array([state.indices[0] for state in states])
            if trajectory.terminated:
                features[-1] = ENDED
            self._aliasing.note(features, trajectory.actions)
        span = self._rule.span if self._rule.forgetting else 0.0
        for h, (state, action, reward) in enumerate(
            zip(states, trajectory.actions.tolist(), trajectory.rewards.tolist(), strict=False)
        ):
            slot = trajectory.first + h if self.slots > 1 else 0
            if h == 0 or self.slots > 1:
                self._changes.fade(slot)
            if state.indices.size == 1 and state.values[0] == 1.0:
                self._changes.note(slot, int(state.indices[0]), action, trajectory.first + h, reward, span)

    def note_steps(self, steps: Steps) -> None:
        ends = np.flatnonzero(np.append(steps.episode[1:] != steps.episode[:-1], True))
        returns = zip([0, *(ends[:-1] + 1)], ends, strict=False) if self.problem.learned_range else ()
        for first, last in returns:
            known, count = steps.rewarded[first : last + 1], last + 1 - first
            if known.any():
                full = count == self.problem.horizon or steps.after[last] == TERMINAL
                whole = bool(known.all()) and steps.step[first] == 0 and full
                self._returns = widened(self._returns, steps.rewards[first : last + 1][known], whole=bool(whole))
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
            steps.step[known],
            begins[: len(episode)],
            steps.rewards[known],
            self._rule.span if self._rule.forgetting else 0.0,
        )

    def draw(self, rng: np.random.Generator) -> float:
        (self._plan,), price = self._draw(rng, 1)
        return price

    def plan_set(self, rng: np.random.Generator, count: int) -> PlanSet:
        problem, plans = self.problem, self._draw(rng, count)[0]
        features = plans[0].features
        if plans[0].actions.size:  # a table as weights: 1 for the chosen action
            chosen = np.stack([plan.actions for plan in plans])[:, :, np.newaxis]
            weights = (chosen == np.arange(problem.actions)[:, np.newaxis]).astype(np.float64)
        elif plans[0].weights.size:
            weights = np.stack([plan.weights for plan in plans])
        else:
            weights = np.zeros((1, 1, self.blocks, 0))
        caps = np.full(problem.horizon, np.inf)
        return PlanSet(weights[:, :, np.newaxis], features, NO_WIDTHS, caps, 1.0, 0.0, 0.0, False)

    def _draw(self, rng: np.random.Generator, count: int) -> tuple[list[Plan], float]:
        """Return `count` plans, made from the same factors, and the cost of one step."""
        if self._choice is not None:
            if not len(self.store):
                return [NOTHING], 0.0
            known = with_rewards_in_flight(self.store.rows(), self.reward_range[1])
            self._choice.follow(self._numbers(), known, self.progress.arrived, self._bounds())
            if self._choice.plays_values:
                return self._draw_last_layer(self._choice, rng, count)
        states, rule = self._states(), self._rule
        if not len(states.indices):
            return [NOTHING], 0.0
        features, compact = np.unique(states.indices, return_inverse=True)
        if features.size > MOST_EXACT and (self.problem.joint or not is_table(states)):
            return self._draw_by_rows(states, rng, count)
        states = states._replace(indices=compact.astype(np.int64))
        if not self.problem.joint and is_table(states):
            return self._draw_tables(states, features, rng, count), 0.0
        share = random_share(rule, self.arrived.outcomes(), 0)
        return self._draw_weights(states, features, share, rng, count)

    def _draw_last_layer(self, choice: Choice, rng: np.random.Generator, count: int) -> tuple[list[Plan], float]:
        """Return `count` plans, each one draw of a network's output layer for all steps, and the cost of one step."""
        drawn, price = choice.draw(self._rule.residual, count, rng)
        features, table = np.arange(choice.map.size), np.zeros((0, 0), np.int64)
        return [Plan(features, table, each[np.newaxis]) for each in drawn], price / self.problem.horizon

    def _draw_tables(self, states: Sparse, features: Ints, rng: np.random.Generator, members: int) -> list[Plan]:
        count, actions, horizon = len(features), self.problem.actions, self.problem.horizon
        values, policy = np.zeros((members, horizon + 1, count)), np.zeros((members, horizon, count), np.int64)
        pairs = count * actions
        draft = SweepScratch(np.zeros(count + 1), np.zeros(pairs), np.zeros((3, pairs)), np.zeros(actions))
        seen, rule, outcomes = np.ones(count, np.int64), self._rule, self.arrived.outcomes()
        for rows, first, last in self.parts():
            counts, slot = make_counts(rows, states.indices, count, actions), first if self.slots > 1 else 0
            counts, known, sure = self._changes.lasting(slot, rule, counts, features, actions)
            share = random_share(rule, outcomes, sure)
            for j in range(members):
                spread_out(rule, known, counts.random, actions, share, rng, draft.spread)
                sweep_table(rule, counts, draft, seen, first, last, rng, values[j], policy[j])
        return [Plan(features, each, np.zeros((0, 0, 0))) for each in policy]

    def _draw_weights(
        self, states: Sparse, features: Ints, share: float, rng: np.random.Generator, count: int
    ) -> tuple[list[Plan], float]:
        horizon, blocks, k = self._ahead, self.blocks, len(features)
        state = np.repeat(np.arange(states.starts.size - 1), np.diff(states.starts))
        norm = float(np.sqrt(np.bincount(state, states.values**2).max())) or 1.0
        lanes = 1 if count == 1 else LANES
        groups = [np.minimum(np.arange(first, first + lanes), count - 1) for first in range(0, count, lanes)]
        drawn, total = np.zeros((len(groups), horizon, blocks, k, lanes)), 0.0
        for rows, first, last in self.parts():
            data, phi, visits = make_data(states, rows, self.problem.actions, size=k, joint=self.problem.joint)
            steps = last - first
            factors = make_factors(self._rule, data, phi, visits, norm, count * steps, rng)
            untried = self._rule.prior / norm * standard_normals(rng, (count * steps, blocks, k))
            if count == 1:
                sweep(self._rule, data, factors, share, first, last, untried, drawn[0, ..., 0])
            else:
                leads_to = transposed(data.next_moment, data.arrivals.size)
                for group, into in zip(groups, drawn, strict=True):
                    own = (group[:, np.newaxis] * steps + np.arange(steps)).ravel()
                    noise = {
                        name: getattr(factors, name)[own].reshape(lanes, steps, -1)
                        for name in ("residual_noise", "hidden_noise", "prior_noise")
                    }
                    fresh = untried[own].reshape(lanes, steps, blocks, k)
                    sweep_together(
                        self._rule, data, leads_to, factors._replace(**noise), share, first, last, fresh, into
                    )
            total += cost(data, steps)
        weights = np.moveaxis(drawn, -1, 1).reshape(-1, horizon, blocks, k)[:count]
        if not np.isfinite(weights).all():
            raise InvalidInputError("action values are not numbers: rewards or features are too large for floats")
        return [Plan(features, np.zeros((0, 0), np.int64), each) for each in weights], total / horizon

    def _draw_by_rows(self, states: Sparse, rng: np.random.Generator, count: int) -> tuple[list[Plan], float]:
        """Return `count` plans, with regressions stored as rows, and the cost of one step."""
        horizon, before = self.problem.horizon, self._plan
        layout = make_layout(states, self.problem.actions, joint=self.problem.joint)
        check_room(
            "the weights of horizon × actions × features seen", count, horizon, self.blocks, layout.features.size
        )
        weights = np.zeros((count, horizon, self.blocks, layout.features.size))
        share, kept = random_share(self._rule, self.arrived.outcomes(), 0), []
        spent = self.residual = 0.0
        for rows, first, last in self.parts():
            slot = first if self.slots > 1 else 0
            begin, end = (int(before.ends[slot - 1]) if slot else 0, before.ends[slot]) if before.ends.size else (0, 0)
            had = before.duals[begin:end] if before.ends.size else np.zeros((0, last - first), np.float32)
            old, steps = (before.keys[begin:end], had), range(first, last)
            regression, duals = plan_by_rows(self._rule, layout, rows, share, slot, steps, old, rng, weights)
            kept.append((regression.keys, duals))
            spent += regression.spent + (last - first) * self.blocks * regression.following.indices.size / 2.0
            self.residual = max(self.residual, regression.residual)
        if not np.isfinite(weights).all():
            raise InvalidInputError("action values are not numbers: rewards or features are too large for floats")
        kept.reverse()
        keys, ends = np.concatenate([each for each, _ in kept]), np.cumsum([len(each) for each, _ in kept])
        duals, table = np.concatenate([each for _, each in kept]), np.zeros((0, 0), np.int64)
        return [Plan(layout.features, table, each, keys, ends, duals) for each in weights], spent / horizon

    def plan_memory(self) -> dict[str, npt.NDArray[Any]]:
        plan = {f"plan.{name}": values for name, values in self._plan._asdict().items()}
        chosen = {} if self._choice is None else self._choice.memory()
        tests = {**self._changes.memory(), **self._aliasing.memory()}
        return {**tests, **plan, **chosen, "returns": np.array(self._returns)}

    def restore_plan(self, memory: dict[str, npt.NDArray[Any]]) -> None:
        plan = Plan(*(np.array(memory[f"plan.{name}"]) for name in Plan._fields))
        horizon, k = self.problem.horizon, plan.features.size
        ahead = min(max(plan.weights.shape[0], 1), horizon)
        shapes = {(0, 0, 0, 0, 0), (horizon, k, 0, 0, 0), (0, 0, ahead, self.blocks, k)}
        rows = plan.keys.shape == plan.duals.shape[:1] and plan.duals.shape[1] in (0, horizon // self.slots)
        ends = [0, *plan.ends.tolist()]
        rows = rows and plan.ends.size in (0, self.slots) and sorted(ends) == ends and ends[-1] == plan.keys.size
        if not rows or (*plan.actions.shape, *plan.weights.shape) not in shapes:
            raise InvalidInputError("memory must hold a plan for this problem")
        returns = memory["returns"].tolist()
        if len(returns) != len(Returns._fields) or max(returns[0::2]) > 0.0 or min(returns[1::2]) < 0.0:
            raise InvalidInputError("memory['returns'] must be the worst and best returns and means, including 0")
        size = self.problem.features.size if self._choice is None else Distinct().size
        self._changes.restore(memory, size, self.problem.actions)
        self._aliasing.restore(memory)
        self._returns = Returns(*returns)
        if self._choice is not None:
            self._choice.restore(memory)
            if self._choice.plays_values and plan.weights.shape != (1, self.blocks, self._choice.map.size):
                raise InvalidInputError("memory must hold a plan for its network")
        self._plan = plan

    def __repr__(self) -> str:
        return f"<{self.settings}: {self.problem}, features: {self.features}>"
