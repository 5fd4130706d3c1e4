"""The values that travel between environments, agents and the runner.

`Problem`, `Policy`, `Trajectory`, `Feedback` and `Agent` have one shape for tables and simulators. In a table a state
is a row number; in a simulator it is the feature vector of an observation. Steps are counted from 0: `h = 0..H-1`.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import KW_ONLY, dataclass, field
from typing import Any, Literal, NamedTuple, Protocol, runtime_checkable

import numpy as np
import numpy.typing as npt

from belated._util.validate import (
    LARGEST_NUMBER,
    REWARD_SLACK,
    array,
    check_room,
    choice,
    flag,
    indices,
    integer,
    moderate,
    probabilities,
    real,
    refuse,
)
from belated.errors import InvalidInputError

Floats = npt.NDArray[np.float64]
"""Arrays of double precision."""
Ints = npt.NDArray[np.int64]
"""Arrays of 64-bit integers."""

#: Compiled agents count episodes in 64 bits.
LAST_EPISODE = int(np.iinfo(np.int64).max)

#: What a trajectory can contain: states with rewards, states whose rewards arrive later, rewards of earlier states, or
#: a signal that precedes a reward.
PARTS = ("all", "states", "rewards", "signal")


class SparseVector(NamedTuple):
    """The nonzero entries of a feature vector."""

    indices: Ints
    """Ascending, each once."""
    values: Floats


class SparseRows(NamedTuple):
    """The feature vectors φ(s, a) of all actions of one state: row a is `starts[a]:starts[a + 1]`."""

    starts: Ints
    indices: Ints
    values: Floats


State = int | SparseVector | SparseRows
"""A row of the table, ψ(s) (φ(s, a) is ψ(s) in the block of action a), or φ(s, ·) of all actions."""


@runtime_checkable
class FeatureMap(Protocol):
    """Turns an observation into ψ(s); φ(s, a) is ψ(s) in the block of action a."""

    @property
    def size(self) -> int:
        """Number of features of a state, k."""

    def encode(self, observation: Any) -> SparseVector | SparseRows: ...


@runtime_checkable
class JointFeatureMap(FeatureMap, Protocol):
    """Turns an observation into φ(s, a) for every action: `encode` returns `SparseRows`."""

    @property
    def actions(self) -> int:
        """Number of rows that `encode` returns, A."""


class Dynamics(NamedTuple):
    """The dynamics, if they are known in advance."""

    transitions: Floats
    """P(s' | s, a), shape (T, S, A, R) with T = 1 or H: only the first R states can be reached."""
    start: Floats
    """Distribution of the first state, shape (S,)."""


class Problem:
    """All that an agent knows in advance: a `TableProblem` or a `SimulatorProblem`. Rewards are never known."""

    horizon: int
    """Steps per episode, H."""
    actions: int
    """Number of actions, A."""
    homogeneous: bool
    """Whether transitions and rewards are known to be the same at every step."""
    reward_range: tuple[float, float]
    """Minimum and maximum of one reward; (-inf, inf) if unknown. Rewards outside are rejected."""
    discount: float
    """γ: the reward of step h is weighted by γ^h; usually 1."""
    dimension: int
    """Dimension of φ(s, a), d."""

    def _check(self) -> None:
        object.__setattr__(self, "horizon", integer("horizon", self.horizon, at_least=1))
        object.__setattr__(self, "homogeneous", flag("homogeneous", self.homogeneous))
        object.__setattr__(self, "reward_range", _range("reward_range", self.reward_range))
        object.__setattr__(self, "discount", checked_discount(self.discount))


@dataclass(frozen=True, eq=False)
class TableProblem(Problem):
    """A problem whose states are known and numbered: the rows of a table of features."""

    features: Floats
    """φ(s, a), shape (states, actions, d)."""
    horizon: int
    dynamics: Dynamics | None = None
    """None, as usual, if the dynamics must be learned."""
    _: KW_ONLY
    homogeneous: bool = False
    reward_range: tuple[float, float] = (0.0, 1.0)
    discount: float = 1.0
    actions: int = field(init=False)
    dimension: int = field(init=False)

    def __post_init__(self) -> None:
        self._check()
        features = moderate("features", array("features", self.features, (None, None, None)))
        for axis, name in enumerate(("states", "actions", "d")):
            integer(f"the number of {name} in features", features.shape[axis], at_least=1)
        object.__setattr__(self, "features", features)
        object.__setattr__(self, "actions", int(features.shape[1]))
        object.__setattr__(self, "dimension", int(features.shape[2]))
        check_room("the table of horizon × states × actions", self.horizon, *features.shape[:2])
        if self.dynamics is not None:
            if not isinstance(self.dynamics, Dynamics):
                raise refuse("dynamics", self.dynamics, "Dynamics, or None")
            shape = (None, *features.shape[:2], None)
            transitions = probabilities("dynamics.transitions", self.dynamics.transitions, shape)
            start = probabilities("dynamics.start", self.dynamics.start, (features.shape[0],))
            object.__setattr__(self, "dynamics", Dynamics(transitions, start))

    @property
    def states(self) -> int:
        """Number of states, S."""
        return int(self.features.shape[0])

    def __str__(self) -> str:
        return f"{self.states} states, {self.actions} actions, d={self.dimension}, H={self.horizon}"


@dataclass(frozen=True, eq=False)
class SimulatorProblem(Problem):
    """A problem that can only be reset and stepped; observations are mapped to features.

    The simulator truncates an episode after H steps, which is not a terminal state.
    """

    features: FeatureMap
    horizon: int
    _: KW_ONLY
    actions: int
    homogeneous: bool = True
    reward_range: tuple[float, float] = (0.0, 1.0)
    discount: float = 1.0
    learned_range: bool = False
    """Whether `reward_range` is only that of the rewards seen so far: rewards outside are accepted and widen it."""
    dimension: int = field(init=False)

    def __post_init__(self) -> None:
        self._check()
        object.__setattr__(self, "learned_range", flag("learned_range", self.learned_range))
        if not isinstance(self.features, FeatureMap):
            raise refuse("features", self.features, "a feature map, with size and encode(observation)")
        integer("features.size", self.features.size, at_least=1)
        integer("actions", self.actions, at_least=1)
        if isinstance(self.features, JointFeatureMap) and self.features.actions != self.actions:
            raise refuse("features.actions", self.features.actions, f"{self.actions}, the problem's actions")
        object.__setattr__(self, "dimension", self.features.size * (1 if self.joint else self.actions))

    @property
    def joint(self) -> bool:
        """Whether the features are φ(s, a) of all actions, not ψ(s)."""
        return isinstance(self.features, JointFeatureMap)

    def __str__(self) -> str:
        return f"{self.features.size} features, {self.actions} actions, d={self.dimension}, H={self.horizon}"


def checked_discount(value: Any) -> float:
    """Return a discount, or raise InvalidInputError."""
    return real("discount", value, above=0, at_most=1)


def _range(name: str, value: Any) -> tuple[float, float]:
    try:
        low, high = (float(end) for end in value)
    except (TypeError, ValueError, OverflowError):
        low = high = math.nan
    if not low < high:
        raise refuse(name, value, "a pair (low, high) of numbers with low < high")
    if any(LARGEST_NUMBER < abs(end) < math.inf for end in (low, high)):
        raise refuse(name, value, f"of magnitude at most {LARGEST_NUMBER:g}, or infinite")
    return low, high


def _check_rewards(name: str, rewards: Floats, problem: Problem) -> None:
    """Raise InvalidInputError if a reward is too large, or outside the problem's range."""
    moderate(name, rewards, LARGEST_NUMBER)
    low, high = problem.reward_range
    if isinstance(problem, SimulatorProblem):
        if problem.learned_range:
            return
        slack = REWARD_SLACK * (high - low) if math.isfinite(high - low) else 0.0
        low, high = low - slack, high + slack
    outside = (rewards < low) | (rewards > high)
    if outside.any():
        where = int(outside.argmax())
        low, high = problem.reward_range
        raise InvalidInputError(
            f"{name} must be within the problem's reward_range [{low:g}, {high:g}], "
            f"got {rewards[where]} at index ({where},)"
        )


class Policy(Protocol):
    """What is played in one episode."""

    def act(self, step: int, state: Any) -> int:
        """Return the action in `state`, a row number or features, at `step`."""


@runtime_checkable
class StochasticPolicy(Policy, Protocol):
    """A policy with known action probabilities: `act` draws from `distribution`, independently of earlier draws."""

    def distribution(self, step: int, state: Any) -> Floats:
        """Return π(a | state) of each action at `step`, shape (A,)."""


@dataclass(frozen=True, eq=False)
class TablePolicy:
    """A deterministic, non-stationary policy: `actions[h, s]` is the action in state s at step h.

    A randomised policy is played by drawing a new table for each episode. Every (h, s) is visited at most once per
    episode, so the trajectory has the same distribution, and the table's value is exact.
    """

    actions: Ints

    def act(self, step: int, state: int) -> int:
        return int(self.actions[step, state])


@dataclass(frozen=True, eq=False)
class Trajectory:
    """The steps `first .. first + n - 1` of one episode: states[0..n], actions[0..n-1], rewards[0..n-1], n <= H."""

    states: Ints | Sequence[SparseVector | SparseRows]
    """Row numbers, or in a simulator the features of each observation."""
    actions: Ints
    rewards: Floats
    terminated: bool = False
    """Whether the last state is terminal, with value zero; otherwise the episode was truncated or continues."""
    first: int = 0
    """Which step of the episode `states[0]` belongs to."""
    part: str = "all"
    """"all"; "states" before their rewards are known; "rewards" of earlier states; or a "signal", a number in place of
    a reward, which only some bandit agents learn from."""

    @property
    def rows(self) -> Ints:
        """The states as row numbers of a table."""
        assert isinstance(self.states, np.ndarray)
        return self.states

    def check(self, problem: Problem) -> Trajectory:
        """Return a validated copy, or raise `InvalidInputError` if it does not match `problem`."""
        actions = indices("trajectory.actions", self.actions, (None,), problem.actions)
        first = integer("trajectory.first", self.first, at_least=0, at_most=problem.horizon - 1)
        part = choice("trajectory.part", self.part, PARTS)
        steps = actions.size
        if not 1 <= steps <= problem.horizon - first:
            most = problem.horizon - first
            raise InvalidInputError(
                f"trajectory.actions must hold 1 to {most} actions from step {first} on, got {steps}"
            )
        if isinstance(problem, SimulatorProblem):
            states: Any = _checked_states(self.states, steps + 1, problem)
        else:
            assert isinstance(problem, TableProblem)
            states = indices("trajectory.states", self.states, (steps + 1,), problem.states)
        rewards = array("trajectory.rewards", np.zeros(steps) if part == "states" else self.rewards, (steps,))
        if part in ("all", "rewards"):
            _check_rewards("trajectory.rewards", rewards, problem)
        return Trajectory(states, actions, rewards, flag("trajectory.terminated", self.terminated), first, part)


def _checked_states(states: Any, count: int, problem: SimulatorProblem) -> Sequence[SparseVector | SparseRows]:
    """Return the feature vectors of the states of a trajectory in a simulator."""
    if not isinstance(states, Sequence):
        raise refuse("trajectory.states", states, "a sequence of feature vectors in a simulator")
    if len(states) != count:
        raise refuse("the number of trajectory.states", len(states), f"{count}, one more than actions")
    kind = SparseRows if problem.joint else SparseVector
    for step, state in enumerate(states):
        if not isinstance(state, kind) or not _are_arrays(state, problem.actions):
            raise refuse(
                f"trajectory.states[{step}]", state, f"{kind.__name__} of int64 and float64 arrays of one length"
            )
    rows = [row for state in states for row in _rows(state)]
    numbers = np.concatenate([row.indices for row in rows])
    row_of = np.repeat(np.arange(len(rows)), [row.indices.size for row in rows])
    bad = (numbers < 0) | (numbers >= problem.features.size)
    bad[1:] |= (numbers[1:] <= numbers[:-1]) & (row_of[1:] == row_of[:-1])
    bad |= ~(np.abs(np.concatenate([row.values for row in rows])) <= LARGEST_NUMBER)
    if bad.any():
        step = int(row_of[bad.argmax()]) * count // len(rows)
        wanted = f"ascending indices in 0..{problem.features.size - 1}, each once, with values of at most "
        wanted += f"{LARGEST_NUMBER:g} in magnitude"
        raise refuse(f"trajectory.states[{step}]", states[step], wanted)
    return states


def _rows(state: SparseVector | SparseRows) -> list[SparseVector]:
    if isinstance(state, SparseVector):
        return [state]
    return [
        SparseVector(state.indices[begin:end], state.values[begin:end])
        for begin, end in zip(state.starts[:-1], state.starts[1:], strict=True)
    ]


def _are_arrays(state: SparseVector | SparseRows, actions: int) -> bool:
    numbers, values = state.indices, state.values
    sparse = (
        isinstance(numbers, np.ndarray)
        and isinstance(values, np.ndarray)
        and numbers.dtype == np.int64
        and values.dtype == np.float64
        and numbers.ndim == 1
        and numbers.shape == values.shape
    )
    if not sparse or isinstance(state, SparseVector):
        return sparse
    starts = state.starts
    if not isinstance(starts, np.ndarray) or starts.dtype != np.int64 or starts.shape != (actions + 1,):
        return False
    return starts[0] == 0 and starts[-1] == numbers.size and bool((np.diff(starts) >= 0).all())


@dataclass(frozen=True, eq=False)
class Feedback:
    """Late feedback: the trajectory of an earlier episode, or a part of it."""

    episode: int
    trajectory: Trajectory

    def check(self, problem: Problem) -> Feedback:
        """Return a validated copy, or raise `InvalidInputError` if it does not match `problem`."""
        episode = integer("feedback.episode", self.episode, at_least=0, at_most=LAST_EPISODE)
        return Feedback(episode, self.trajectory.check(problem))


def check_batch(batch: Any, problem: Problem) -> list[Feedback]:
    """Return validated copies of all feedback in `batch`; raise `InvalidInputError` if any does not match `problem`."""
    if not isinstance(batch, Iterable):
        raise refuse("the batch", batch, "a sequence of Feedback")
    feedback = list(batch)
    for each in feedback:
        if not isinstance(each, Feedback) or not isinstance(each.trajectory, Trajectory):
            raise refuse("the batch", each, "made of Feedback, each with a Trajectory")
    return [each.check(problem) for each in feedback]


@runtime_checkable
class Agent(Protocol):
    """All that the runner requires of an agent."""

    def plan(self, rng: np.random.Generator) -> Policy:
        """Return the policy of the next episode; all randomness comes from `rng`."""

    def learn(self, batch: Sequence[Feedback]) -> None:
        """Learn the feedback that has arrived since the last plan; the batch may be empty."""


@runtime_checkable
class PlansFromStart(Agent, Protocol):
    """An agent on a table that is given the first state of an episode, and need plan only for reachable states.

    With one step and many states, as in a contextual bandit, that saves nearly all the work.
    """

    def plan_from(self, rng: np.random.Generator, state: int) -> TablePolicy: ...


@runtime_checkable
class Savable(Agent, Protocol):
    """An agent whose state is named arrays, so that it can be saved and runs can be resumed in the middle."""

    def memory(self) -> dict[str, npt.NDArray[Any]]: ...

    def restore(self, memory: dict[str, npt.NDArray[Any]]) -> None:
        """Replace the state; invalid arrays raise `InvalidInputError` and change nothing."""


@runtime_checkable
class Algorithm(Protocol):
    """Settings from which any number of agents can be started."""

    def start(self, problem: Problem) -> Agent:
        """Return a new agent for `problem`."""


Plays = Literal["tables", "both", "features", "steps"]
"""Where an algorithm can play. "tables": only on a table of all states; "both": on the table if there is one, else on
features; "features": always on features, except in this library's own tables; "steps": anywhere, step by step: its
policies are queried only for the states that an episode visits, in order."""


@runtime_checkable
class SaysWhereItPlays(Algorithm, Protocol):
    """An algorithm that declares where it can play; without that, it needs a table."""

    @property
    def plays(self) -> Plays: ...


class Step(NamedTuple):
    """The result of one action in an environment."""

    observation: Any
    reward: float
    terminated: bool
    """Whether the observation is of a terminal state, whose value is zero."""
    truncated: bool
    """Whether the episode was cut although it could have continued."""


@runtime_checkable
class Environment(Protocol):
    """What agents are played in: a table (`FiniteMDP`), a Gymnasium environment (`GymEnvironment`), or yours.

    An environment has at most one episode per thread: `reset` begins the next one.
    """

    @property
    def label(self) -> str:
        """A name that can be used in file names."""

    @property
    def problem(self) -> Problem: ...

    def reset(self, *, seed: int, episode: int) -> Any:
        """Begin `episode` of the run with `seed` and return the first observation."""

    def step(self, action: int) -> Step: ...

    def encode(self, observation: Any) -> State:
        """Return the state that agents see: a row number, or features."""

    def describe(self) -> dict[str, Any]:
        """Return plain values; equal values mean equal environments."""
