"""The part shared by policy optimisation algorithms: occupancy measures, confidence sets, and the agent."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from belated._kernels.exp_log import exp
from belated._kernels.jit import copy, entry_point, kernel
from belated._util.validate import array, check_generator, check_room, indices, integer, probabilities, real, refuse
from belated.agents import _invariants as invariants
from belated.agents._base import Settings
from belated.agents._heard import Heard
from belated.agents._invariants import LARGEST_COUNT
from belated.errors import InvalidInputError
from belated.types import LAST_EPISODE, Feedback, Floats, Ints, Problem, TablePolicy, TableProblem, Trajectory


class Model(NamedTuple):
    """Lower and upper bounds on the transition probabilities, equal if the dynamics are known."""

    low: Floats
    """Shape (H, S, A, S)."""
    high: Floats
    start_low: Floats
    """Shape (S,)."""
    start_high: Floats
    exact: bool
    """Whether the bounds are equal everywhere."""


class Rates(NamedTuple):
    """The rates of the update."""

    step_size: float
    """η."""
    exploration: float
    """γ."""


@kernel
def rank(values: Floats, largest_first: bool, order: Ints) -> None:
    """Set `order` to the stable sort order of `values`, descending or ascending."""
    for i in range(values.size):
        j = i
        while j > 0 and (values[order[j - 1]] < values[i] if largest_first else values[order[j - 1]] > values[i]):
            order[j] = order[j - 1]
            j -= 1
        order[j] = i


@kernel
def extreme_mean(low: Floats, high: Floats, order: Ints, values: Floats) -> float:
    """Return the mean of `values` under the distribution within the bounds that puts most mass first in `order`.

    With the largest values first this is the maximum mean of any distribution within the bounds, with the smallest
    first the minimum.
    """
    total, left = 0.0, 1.0
    for s in range(values.size):
        total += low[s] * values[s]
        left -= low[s]
    for s in order:
        if left <= 0.0:
            break
        more = min(high[s] - low[s], left)
        total += more * values[s]
        left -= more
    return total


@kernel
def occupancy(model: Model, policy: Floats, reached: Floats) -> None:
    """Set `reached` (H, S) to the probability that `policy` (H, S, A) is in s at step h, under `model.low`."""
    reached[:] = 0.0
    copy(model.start_low, reached[0])
    horizon, states, actions = policy.shape
    for h in range(horizon - 1):
        for s in range(states):
            for a in range(actions):
                weight = reached[h, s] * policy[h, s, a]
                if weight > 0.0:
                    for after in range(states):
                        reached[h + 1, after] += weight * model.low[h, s, a, after]


@kernel
def occupancy_bound(model: Model, policy: Floats, upper: bool, reached: Floats) -> None:
    """Set `reached` (H, S) to the maximum or minimum occupancy over all dynamics of `model`.

    For each (h, s) separately: u(s'') = 1{s'' = s} at step h, then u(s') = Σ_a π(a|s') max_P Σ P(s''|s', a) u(s'')
    backwards. The rows of P can be chosen independently, so this is exact.
    """
    if model.exact:
        occupancy(model, policy, reached)
        return
    horizon, states, actions = policy.shape
    order = np.zeros(states, np.int64)
    chance, before = np.zeros(states), np.zeros(states)
    for h in range(horizon):
        for s in range(states):
            chance[:] = 0.0
            chance[s] = 1.0
            for back in range(h):
                step = h - 1 - back
                rank(chance, upper, order)
                for origin in range(states):
                    before[origin] = 0.0
                    for a in range(actions):
                        mean = extreme_mean(model.low[step, origin, a], model.high[step, origin, a], order, chance)
                        before[origin] += policy[step, origin, a] * mean
                copy(before, chance)
            rank(chance, upper, order)
            reached[h, s] = extreme_mean(model.start_low, model.start_high, order, chance)


bound_occupancy = entry_point(occupancy_bound)


@kernel
def confidence_bounds(counts: Ints, log_term: float, scale: float, low: Floats, high: Floats) -> None:
    """Set the bounds of a row of probabilities from the counts of its states (Jin et al., 2020)."""
    total = counts.sum()
    if total == 0:  # anything is possible
        low[:] = 0.0
        high[:] = 1.0
        return
    n = float(max(total - 1, 1))
    for s in range(counts.size):
        mean = counts[s] / total
        width = scale * (2.0 * math.sqrt(mean * log_term / n) + 14.0 * log_term / (3.0 * n))
        low[s] = max(mean - width, 0.0)
        high[s] = min(mean + width, 1.0)


@entry_point
def bound_all(followed: Ints, starts: Ints, log_term: float, scale: float, model: Model) -> None:
    """Set the bounds of the whole model from the counts `followed` (H, S, A, S) and `starts` (S,)."""
    confidence_bounds(starts, log_term, scale, model.start_low, model.start_high)
    horizon, states, actions, _ = followed.shape
    for h in range(horizon):
        for s in range(states):
            for a in range(actions):
                confidence_bounds(followed[h, s, a], log_term, scale, model.low[h, s, a], model.high[h, s, a])


@entry_point
def soft_policy(scores: Floats, policy: Floats) -> None:
    """Set `policy` (H, S, A) to π(a|s) ∝ exp(score)."""
    horizon, states, actions = scores.shape
    for h in range(horizon):
        for s in range(states):
            top, total = scores[h, s, 0], 0.0
            for a in range(1, actions):
                top = max(top, scores[h, s, a])
            for a in range(actions):
                policy[h, s, a] = exp(scores[h, s, a] - top)
                total += policy[h, s, a]
            for a in range(actions):
                policy[h, s, a] /= total


@entry_point
def draw_table(policy: Floats, rng: np.random.Generator, table: Ints) -> None:
    """Draw an action for every step and state, with one uniform number each."""
    horizon, states, actions = policy.shape
    for h in range(horizon):
        for s in range(states):
            left, choice = rng.random() - policy[h, s, 0], 0
            while left >= 0.0 and choice + 1 < actions:
                choice += 1
                left -= policy[h, s, choice]
            table[h, s] = choice


@dataclass(frozen=True, kw_only=True)
class PolicyOptimisation(Settings):
    """Base class of the settings of Delayed OPPO and DAPO."""

    step_size: float | None = None
    """η; None for the theory's, from `episodes` and `mean_delay`."""
    exploration: float | None = None
    """γ of the importance weights 1/(probability + γ); None for the theory's."""
    episodes: int = 1000
    """K, the number of episodes that will be played."""
    mean_delay: float = 0.0
    """D/K, the expected mean delay."""
    confidence: float = 1.0
    """Factor on the widths of the confidence sets; 1 is the theory's. Unused if the dynamics are known."""
    delta: float = 0.05
    """δ, the probability that the confidence sets fail."""

    def __post_init__(self) -> None:
        if self.step_size is not None:
            real("step_size", self.step_size, above=0)
        if self.exploration is not None:
            real("exploration", self.exploration, above=0)
        integer("episodes", self.episodes, at_least=1)
        real("mean_delay", self.mean_delay, at_least=0)
        real("confidence", self.confidence, at_least=0)
        real("delta", self.delta, above=0, below=1)

    def rates(self, problem: TableProblem) -> Rates:
        raise TypeError(f"{type(self).__name__} must define rates(problem)")

    def improve(
        self, model: Model, past: Floats, now: Floats, trajectory: Trajectory, rates: Rates, scores: Floats
    ) -> None:
        """Add the update by a trajectory of the policy `past`, arriving under the policy `now`, to `scores`."""
        raise TypeError(f"{type(self).__name__} must define improve(...)")

    def start(self, problem: Problem) -> PolicyOptimiser:
        self.check_steps(problem)
        return PolicyOptimiser(self, self.needs_table(problem))


class PolicyOptimiser:
    """An agent with a score for every step, state and action, which plays π(a|s) ∝ exp(score).

    Feedback is collected until the next plan, which first counts all of it and then updates the scores in the order of
    the episodes: neither batches nor the order of arrival matter. The policies of episodes in flight are stored, H·S·A
    numbers each. Feedback of an episode that this agent has not planned is treated as that of uniformly random actions.
    """

    def __init__(self, settings: PolicyOptimisation, problem: TableProblem) -> None:
        self.settings = settings
        self.problem = problem
        self.rates = settings.rates(problem)
        shape = (problem.horizon, problem.states, problem.actions)
        check_room("the counts of horizon × states × actions × states", *shape, problem.states)
        self.scores = np.zeros(shape)
        """−η Σ Q over the learned episodes, where Q is in costs and includes the bonus, if there is one."""
        self.followed = np.zeros((*shape, problem.states), dtype=np.int64)
        """N_h(s, a, s') over all learned episodes."""
        self.starts = np.zeros(problem.states, dtype=np.int64)
        """Number of learned episodes that started in each state."""
        self.planned = 0
        """How many episodes have been planned."""
        self.in_flight: dict[int, Floats] = {}
        """The policies π of episodes that were planned but not learned yet."""
        self.arrived: list[tuple[int, Trajectory]] = []
        """Feedback that has arrived since the last plan, by episode."""
        self.heard = Heard(problem.horizon)
        low, high = np.empty((2, *self.followed.shape))
        start_low, start_high = np.empty((2, problem.states))
        self.model = self._known() or Model(low, high, start_low, start_high, exact=False)
        pairs = problem.states * problem.actions
        self.log_term = math.log(pairs * problem.horizon * int(settings.episodes)) - math.log(settings.delta)
        """ln(SAHK/δ)."""

    def _known(self) -> Model | None:
        dynamics = self.problem.dynamics
        if dynamics is None:
            return None
        distribution = np.zeros(self.followed.shape)
        distribution[..., : dynamics.transitions.shape[-1]] = dynamics.transitions
        start = np.array(dynamics.start)
        return Model(distribution, distribution, start, start, True)

    def policy(self) -> Floats:
        """Return π(a|s) of the current scores, shape (H, S, A)."""
        policy = np.empty(self.scores.shape)
        soft_policy(self.scores, policy)
        return policy

    def plan(self, rng: np.random.Generator) -> TablePolicy:
        check_generator("rng", rng)
        self._learn_arrived()
        policy = self.policy()
        actions = np.empty(policy.shape[:2], dtype=np.int64)
        draw_table(policy, rng, actions)
        self.in_flight[self.planned] = policy
        self.planned += 1
        return TablePolicy(actions)

    def _learn_arrived(self) -> None:
        if not self.arrived:
            return
        steps = np.arange(self.problem.horizon)
        for _, trajectory in self.arrived:
            self.followed[steps, trajectory.rows[:-1], trajectory.actions, trajectory.rows[1:]] += 1
            self.starts[trajectory.rows[0]] += 1
        if not self.model.exact:
            bound_all(self.followed, self.starts, self.log_term, float(self.settings.confidence), self.model)
        now = self.policy()
        uniform = np.full(self.scores.shape, 1.0 / self.problem.actions)
        for episode, trajectory in self.arrived:
            past = self.in_flight.pop(episode, uniform)
            self.settings.improve(self.model, past, now, trajectory, self.rates, self.scores)
        self.arrived = []

    def learn(self, batch: Sequence[Feedback]) -> None:
        clean = self.settings.check_feedback(batch, self.problem)
        self.heard.take(clean)
        arrived = [(feedback.episode, feedback.trajectory) for feedback in clean]
        self.arrived = sorted([*self.arrived, *arrived], key=lambda arrived: arrived[0])

    def memory(self) -> dict[str, npt.NDArray[Any]]:
        p = self.problem
        trajectories = [trajectory for _, trajectory in self.arrived]
        return {
            "scores": self.scores,
            "followed": self.followed,
            "starts": self.starts,
            "planned": np.array([self.planned]),
            "under_way.episodes": np.array(list(self.in_flight), dtype=np.int64),
            "under_way.policies": np.array(list(self.in_flight.values())).reshape(-1, *self.scores.shape),
            "waiting.episodes": np.array([episode for episode, _ in self.arrived], dtype=np.int64),
            "waiting.states": np.array([t.states for t in trajectories], dtype=np.int64).reshape(-1, p.horizon + 1),
            "waiting.actions": np.array([t.actions for t in trajectories], dtype=np.int64).reshape(-1, p.horizon),
            "waiting.rewards": np.array([t.rewards for t in trajectories]).reshape(-1, p.horizon),
            "heard": self.heard.memory(),
        }

    def restore(self, memory: dict[str, npt.NDArray[Any]]) -> None:
        wanted = self.memory()
        if set(wanted) != set(memory):
            raise InvalidInputError(f"memory must hold the arrays {sorted(wanted)}, got {sorted(memory)}")
        p, shape = self.problem, self.scores.shape
        heard = Heard.restored(memory["heard"], p.horizon)
        scores = array("memory['scores']", memory["scores"], shape)
        followed = indices("memory['followed']", memory["followed"], self.followed.shape, LARGEST_COUNT)
        starts = indices("memory['starts']", memory["starts"], self.starts.shape, LARGEST_COUNT)
        counted = followed.sum(axis=(1, 2, 3))
        invariants.require(counted == starts.sum(), "followed", "count each episode once at every step")
        invariants.require(followed[0].sum(axis=(1, 2)) == starts, "starts", "agree with what followed at step 0")
        planned = int(indices("memory['planned']", memory["planned"], (1,), LARGEST_COUNT)[0])
        policies = array("memory['under_way.policies']", memory["under_way.policies"], (None, *shape))
        if policies.size:
            probabilities("memory['under_way.policies']", policies, (None, *shape))
        episodes = memory["under_way.episodes"]
        under_way = indices("memory['under_way.episodes']", episodes, (len(policies),), max(planned, 1)).tolist()
        if len(set(under_way)) < len(under_way):
            raise refuse("memory['under_way.episodes']", under_way, "distinct episodes")
        waiting = indices("memory['waiting.episodes']", memory["waiting.episodes"], (None,), LAST_EPISODE).tolist()
        count = len(waiting)
        states = indices("memory['waiting.states']", memory["waiting.states"], (count, p.horizon + 1), p.states)
        actions = indices("memory['waiting.actions']", memory["waiting.actions"], (count, p.horizon), p.actions)
        rewards = array("memory['waiting.rewards']", memory["waiting.rewards"], (count, p.horizon))
        invariants.rewards("waiting.rewards", rewards, p)
        arrived = [Trajectory(*each) for each in zip(states, actions, rewards, strict=True)]
        self.scores, self.followed, self.starts = scores.copy(), followed.copy(), starts.copy()
        self.planned, self.heard = planned, heard
        self.in_flight = dict(zip(under_way, policies.copy(), strict=True))
        self.arrived = sorted(zip(waiting, arrived, strict=True), key=lambda each: each[0])

    def __repr__(self) -> str:
        p = self.problem
        return f"<{self.settings}: {p.states} states, {p.actions} actions, d={p.dimension}, H={p.horizon}>"
