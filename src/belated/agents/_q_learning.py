"""Q-learning on late feedback: the common baseline."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import numpy as np
import numpy.typing as npt

from belated._kernels.jit import inlined
from belated._kernels.planning import LARGEST_VALUE, TIE, greedy
from belated._util.validate import check_generator, flag, real, refuse
from belated.agents._base import Arrival, CompiledSettings
from belated.agents._heard import Heard, without_heard
from belated.agents._invariants import check_memory, require
from belated.agents._plan_sets import NO_WIDTHS, PlanSet
from belated.agents._transitions import sums
from belated.errors import InvalidInputError
from belated.types import (
    Feedback,
    Floats,
    Ints,
    Plays,
    Problem,
    Savable,
    SimulatorProblem,
    SparseRows,
    SparseVector,
    TableProblem,
    check_batch,
)

#: Features with a smaller squared norm are ignored: dividing by it could overflow.
TINY = 1e-200


@dataclass(frozen=True, kw_only=True)
class DelayedQLearning(CompiledSettings):
    """Linear Q-learning (Watkins, 1989) with ε-greedy actions, tabular where the features are one-hot.

    A trajectory is learned once, when it arrives, from its last step to its first:

        w ← w + α·(r + γ·max_b Q(s', b) − Q(s, a))·φ/‖φ‖²,   Q = wᵀφ,

    so that each step removes the fraction α of its error, whatever the scale of the features. Weights start at zero,
    and ties are broken at random. Unlike in the other agents, what is learned depends on the order of arrival.

    If dynamics and rewards do not depend on the step, all steps share one w. Its values are discounted by γ = 1 − 1/H
    and ignore the horizon: a truncated episode bootstraps. Otherwise each step has its own w, γ = 1, and nothing
    follows the last step.

    Examples
    --------
    >>> from belated import RiverSwim
    >>> agent = DelayedQLearning().start(RiverSwim().problem)
    >>> agent.plan(np.random.default_rng(0)).actions.shape
    (20, 5)
    """

    kind: ClassVar[str] = "q-learning"
    plays: ClassVar[Plays] = "features"
    order_matters: ClassVar[bool] = True
    """Whether what is learned depends on the order of arrival."""

    epsilon: float = 0.1
    """ε, the probability of a random action."""
    step_size: float = 0.1
    """α, the fraction of an error that one step removes."""
    shared: bool | None = None
    """Whether all steps share their weights; None to decide by the problem."""
    discount: float | None = None
    """γ; None for 1 − 1/H if steps share their weights, else 1."""

    def __post_init__(self) -> None:
        real("epsilon", self.epsilon, at_least=0, at_most=1)
        real("step_size", self.step_size, above=0, at_most=1)
        if self.shared is not None:
            flag("shared", self.shared)
        if self.discount is not None:
            real("discount", self.discount, at_least=0, at_most=1)

    def shares(self, problem: Problem) -> bool:
        """Whether all steps of `problem` share their weights."""
        return bool(problem.homogeneous if self.shared is None else self.shared)

    def gamma(self, problem: Problem) -> float:
        if self.discount is not None:
            return float(self.discount)
        return 1.0 - 1.0 / problem.horizon if self.shares(problem) else 1.0

    def record(self, problem: TableProblem) -> QRecord:
        pairs, shared = problem.states * problem.actions, self.shares(problem)
        return QRecord(
            learned=Weights(np.zeros((1 if shared else problem.horizon, problem.dimension))),
            features=np.ascontiguousarray(problem.features.reshape(pairs, problem.dimension)),
            q=np.zeros(pairs),
            values=np.zeros(problem.states),
            shared=shared,
            epsilon=float(self.epsilon),
            step_size=float(self.step_size),
            discount=self.gamma(problem),
        )

    def start_simulator(self, problem: SimulatorProblem) -> Savable:
        return FeatureQLearner(self, problem)


class Weights(NamedTuple):
    """Everything learned from feedback."""

    weights: Floats
    """w, shape (T, d), where T is 1 or H."""


class QRecord(NamedTuple):
    """Arrays of one Q-learner; the pair (s, a) is row s·A + a."""

    learned: Weights
    features: Floats
    q: Floats
    values: Floats
    shared: bool
    epsilon: float
    step_size: float
    discount: float

    def plan(self, rng: np.random.Generator, start: int, policy: Ints) -> None:
        """Act greedily, but replace each entry of the table by a random action with probability ε."""
        q, actions = self.q, self.q.size // self.values.size
        for h in range(policy.shape[0]):
            if h == 0 or not self.shared:
                for j in range(q.size):
                    q[j] = product(self.learned.weights[h], self.features[j])
            greedy(q, np.inf, False, rng, self.values, policy[h])
            for s in range(policy.shape[1]):
                if rng.random() < self.epsilon:
                    policy[h, s] = int(rng.random() * actions)

    def learn(self, arrival: Arrival) -> None:
        """Learn one late trajectory, from its last step to its first."""
        weights, states, horizon = self.learned.weights, arrival.states, len(self.learned.weights)
        per_state = self.q.size // self.values.size
        for step in range(arrival.actions.size - 1, -1, -1):
            h = 0 if self.shared else arrival.first + step
            follows = 0.0
            ended = arrival.terminated and step == arrival.actions.size - 1
            if not ended and (self.shared or h + 1 < horizon):
                following = weights[0 if self.shared else h + 1]
                follows = -np.inf
                for b in range(per_state):
                    follows = max(follows, product(following, self.features[states[step + 1] * per_state + b]))
            w, phi = weights[h], self.features[states[step] * per_state + arrival.actions[step]]
            norm = product(phi, phi)
            if norm > 0.0:
                # w ← w + α·(r + γ·max_b Q(s', b) − Q(s, a))·φ/‖φ‖²
                part = self.step_size * (arrival.rewards[step] + self.discount * follows - product(w, phi)) / norm
                for i in range(phi.size):
                    w[i] += part * phi[i]

    def settle(self) -> None:
        """Do nothing: `learn` defers no work."""


@inlined
def product(w: Floats, phi: Floats) -> float:
    total = 0.0
    for i in range(phi.size):
        total += w[i] * phi[i]
    return total


class FeatureQPolicy:
    """Acts ε-greedily on weights of shape (T, A, k), or (T, 1, k) with joint features."""

    def __init__(self, weights: Floats, actions: int, epsilon: float, seed: int) -> None:
        self._weights, self._actions, self._epsilon = weights, actions, epsilon
        self._rng = np.random.default_rng(seed)

    def act(self, step: int, state: SparseVector | SparseRows) -> int:
        """Return the action at `step` in the state with the features `state`."""
        if self._rng.random() < self._epsilon:
            return int(self._rng.integers(self._actions))
        ties = self._best(step, state)
        return int(ties[int(self._rng.random() * ties.size)])

    def distribution(self, step: int, state: SparseVector | SparseRows) -> Floats:
        ties, shares = self._best(step, state), np.full(self._actions, self._epsilon / self._actions)
        shares[ties] += (1.0 - self._epsilon) / ties.size
        return shares

    def _best(self, step: int, state: SparseVector | SparseRows) -> Ints:
        q = values_of(self._weights[min(step, len(self._weights) - 1)], state)
        best = float(q.max())
        ties: Ints = np.flatnonzero(q >= best - TIE * max(1.0, abs(best)))
        if not ties.size:
            raise InvalidInputError("action values are not numbers: rewards or features are too large for floats")
        return ties


class FeatureQLearner:
    def __init__(self, settings: DelayedQLearning, problem: SimulatorProblem) -> None:
        self.settings, self.problem = settings, problem
        self._shared, self._discount = settings.shares(problem), settings.gamma(problem)
        blocks = 1 if problem.joint else problem.actions
        self._weights = np.zeros((1 if self._shared else problem.horizon, blocks, problem.features.size))
        self.heard = Heard(problem.horizon)

    def plan(self, rng: np.random.Generator) -> FeatureQPolicy:
        check_generator("rng", rng)
        actions, epsilon = self.problem.actions, float(self.settings.epsilon)
        return FeatureQPolicy(self._weights.copy(), actions, epsilon, int(rng.integers(2**63)))

    def plan_set(self, rng: np.random.Generator, count: int) -> PlanSet:
        """Return one plan, since all would be equal."""
        weights, k = self._weights[np.newaxis, :, np.newaxis].copy(), self.problem.features.size
        caps = np.full(self.problem.horizon, np.inf)
        return PlanSet(weights, np.arange(k), NO_WIDTHS, caps, 1.0, float(self.settings.epsilon), TIE, False)

    def learn(self, batch: Sequence[Feedback]) -> None:
        clean = check_batch(batch, self.problem)
        for feedback in clean:
            part = feedback.trajectory.part
            if part != "all":
                raise refuse("trajectory.part", part, "'all': Q-learning learns states with their rewards")
        self.heard.take(clean)
        for feedback in clean:
            late: Any = feedback.trajectory
            last = len(late.actions) - 1
            for i in range(last, -1, -1):
                h = late.first + i
                slot = 0 if self._shared else h
                follows = 0.0
                if not (late.terminated and i == last) and (self._shared or h + 1 < self.problem.horizon):
                    after = values_of(self._weights[0 if self._shared else h + 1], late.states[i + 1])
                    follows = float(np.clip(after.max(), -LARGEST_VALUE, LARGEST_VALUE))
                here, action = late.states[i], int(late.actions[i])
                if isinstance(here, SparseRows):
                    row = slice(here.starts[action], here.starts[action + 1])
                    here, action = SparseVector(here.indices[row], here.values[row]), 0
                w = self._weights[slot, action]
                norm = float(here.values @ here.values)
                if norm > TINY:
                    error = late.rewards[i] + self._discount * follows - w[here.indices] @ here.values
                    moved = w[here.indices] + self.settings.step_size * error / norm * here.values
                    w[here.indices] = np.clip(moved, -LARGEST_VALUE, LARGEST_VALUE)

    def memory(self) -> dict[str, npt.NDArray[Any]]:
        return {"weights": self._weights, "heard": self.heard.memory()}

    def restore(self, memory: dict[str, npt.NDArray[Any]]) -> None:
        weights = check_memory(without_heard(memory, ["weights"]), {"weights": self._weights})["weights"]
        require(np.abs(weights) <= LARGEST_VALUE, "weights", f"be of magnitude at most {LARGEST_VALUE:g}")
        self.heard = Heard.restored(memory["heard"], self.problem.horizon)
        self._weights = weights

    def __repr__(self) -> str:
        return f"<{self.settings}: {self.problem}>"


def values_of(weights: Floats, state: SparseVector | SparseRows) -> Floats:
    """Return the values of all actions, from weights of shape (A, k), or (1, k) with joint features."""
    if isinstance(state, SparseRows):
        action = np.repeat(np.arange(len(state.starts) - 1), np.diff(state.starts))
        return sums(action, weights[0, state.indices] * state.values, len(state.starts) - 1)
    values: Floats = weights[:, state.indices] @ state.values
    return values
