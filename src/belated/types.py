"""The few values that travel between the parts: `Problem`, `Policy`, `Trajectory`, `Feedback`.

Steps are counted from 0: `h = 0..H-1`. States and actions are row numbers of the problem's feature table.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import KW_ONLY, dataclass
from typing import Any, NamedTuple, Protocol, runtime_checkable

import numpy as np
import numpy.typing as npt

from belated._util.validate import array, check_room, choice, flag, indices, integer, moderate, probabilities, refuse
from belated.errors import InvalidInputError

Floats = npt.NDArray[np.float64]
"""Arrays of double precision."""
Ints = npt.NDArray[np.int64]
"""Arrays of 64-bit integers."""

#: What a trajectory brings: everything, the states without their rewards, or the rewards of states that came before.
PARTS = ("all", "states", "rewards")

#: The largest number of an episode: compiled agents count in 64 bits.
LAST_EPISODE = int(np.iinfo(np.int64).max)


class Dynamics(NamedTuple):
    """How states follow one another, where that is known beforehand."""

    transitions: Floats
    """P(s' | s, a), shape (T, S, A, R), T being 1 or H: only the first R states can be reached."""
    start: Floats
    """Distribution of the first state, shape (S,)."""


@dataclass(frozen=True, eq=False)
class Problem:
    """All that an agent may know before it starts: the features and the horizon, and the dynamics where they are known.

    The rewards are never known.
    """

    features: Floats
    """The table φ(s, a), shape (states, actions, d)."""
    horizon: int
    """Steps per episode, H."""
    dynamics: Dynamics | None = None
    """None, as usual, where the dynamics have to be learned."""
    _: KW_ONLY
    homogeneous: bool = False
    """Whether transitions and rewards are known to be the same at every step."""
    reward_range: tuple[float, float] = (0.0, 1.0)
    """The least and the largest reward there can be; (-inf, inf) if that is not stated."""

    def __post_init__(self) -> None:
        features = moderate("features", array("features", self.features, (None, None, None)))
        for axis, name in enumerate(("states", "actions", "d")):
            integer(f"the number of {name} in features", features.shape[axis], at_least=1)
        object.__setattr__(self, "features", features)
        object.__setattr__(self, "horizon", integer("horizon", self.horizon, at_least=1))
        check_room("the table of horizon × states × actions", self.horizon, *features.shape[:2])
        object.__setattr__(self, "homogeneous", flag("homogeneous", self.homogeneous))
        object.__setattr__(self, "reward_range", _range("reward_range", self.reward_range))
        if self.dynamics is not None:
            if not isinstance(self.dynamics, Dynamics):
                raise refuse("dynamics", self.dynamics, "Dynamics, or None")
            distribution = probabilities(
                "dynamics.transitions", self.dynamics.transitions, (None, *features.shape[:2], None)
            )
            start = probabilities("dynamics.start", self.dynamics.start, (features.shape[0],))
            object.__setattr__(self, "dynamics", Dynamics(distribution, start))

    @property
    def states(self) -> int:
        """Number of rows of the feature table."""
        return int(self.features.shape[0])

    @property
    def actions(self) -> int:
        """Number of actions."""
        return int(self.features.shape[1])

    @property
    def dimension(self) -> int:
        """Feature dimension d."""
        return int(self.features.shape[2])


def _range(name: str, value: Any) -> tuple[float, float]:
    """Return a pair (low, high) of floats with low < high; both may be infinite."""
    try:
        low, high = (float(end) for end in value)
    except (TypeError, ValueError, OverflowError):
        low = high = math.nan
    if not low < high:
        raise refuse(name, value, "a pair (low, high) of numbers with low < high")
    return low, high


@dataclass(frozen=True, eq=False)
class Policy:
    """A deterministic, non-stationary policy: `actions[h, s]` is what it does in state s at step h.

    A randomised rule is played by drawing a new table for each episode. Every (h, s) is met at most
    once in an episode, so the distribution of the trajectory is the same, and the table's value is exact.
    """

    actions: Ints

    def act(self, step: int, state: int) -> int:
        """Return the action taken in `state` at `step`."""
        return int(self.actions[step, state])


@dataclass(frozen=True, eq=False)
class Trajectory:
    """An episode, or n consecutive steps of one: `states[0..n]`, `actions[0..n-1]`, `rewards[0..n-1]`."""

    states: Ints
    actions: Ints
    rewards: Floats
    terminated: bool = False
    """Whether the last state is terminal: nothing follows, and it is worth nothing."""
    first: int = 0
    """The number of the first step."""
    part: str = "all"
    """What has arrived: "all", the "states" only, or the "rewards" of states that came before."""

    def check(self, problem: Problem) -> Trajectory:
        """Return a clean copy that fits `problem`, or raise `InvalidInputError`."""
        first = integer("trajectory.first", self.first, at_least=0, at_most=problem.horizon - 1)
        part = choice("trajectory.part", self.part, PARTS)
        actions = indices("trajectory.actions", self.actions, (None,), problem.actions)
        steps = actions.size
        if not 1 <= steps <= problem.horizon - first:
            most = problem.horizon - first
            raise InvalidInputError(
                f"trajectory.actions must hold 1 to {most} actions from step {first} on, got {steps}"
            )
        states = indices("trajectory.states", self.states, (steps + 1,), problem.states)
        rewards = array("trajectory.rewards", np.zeros(steps) if part == "states" else self.rewards, (steps,))
        low, high = problem.reward_range
        outside = (rewards < low) | (rewards > high)
        if part != "states" and outside.any():
            where = int(outside.argmax())
            raise InvalidInputError(
                f"trajectory.rewards must be within the problem's reward_range [{low:g}, {high:g}], "
                f"got {rewards[where]} at index ({where},)"
            )
        return Trajectory(states, actions, rewards, flag("trajectory.terminated", self.terminated), first, part)


@dataclass(frozen=True, eq=False)
class Feedback:
    """What reaches an agent, late: the trajectory of an earlier episode."""

    episode: int
    trajectory: Any
    """A `Trajectory`, or a `SampledTrajectory` where an environment can only be sampled."""

    def check(self, problem: Problem) -> Feedback:
        """Return a clean copy that fits `problem`, or raise `InvalidInputError`."""
        episode = integer("feedback.episode", self.episode, at_least=0, at_most=LAST_EPISODE)
        return Feedback(episode, self.trajectory.check(problem))


def check_batch(batch: Any, problem: Problem) -> list[Feedback]:
    """Return clean copies of all feedback in `batch`, or raise `InvalidInputError` if any does not fit `problem`."""
    if not isinstance(batch, Iterable):
        raise refuse("the batch", batch, "a sequence of Feedback")
    feedback = list(batch)
    for each in feedback:
        if not isinstance(each, Feedback) or not isinstance(each.trajectory, Trajectory):
            raise refuse("the batch", each, "made of Feedback, each with a Trajectory")
    return [each.check(problem) for each in feedback]


@runtime_checkable
class Agent(Protocol):
    """What the runner needs of an agent. Nothing else is asked of yours.

    An agent may also have `plan_from(rng, state)`, which is then called instead of `plan` and told where the
    episode starts: the policy it returns need be right only in states that can follow. With one step and many states,
    as in a contextual bandit, that saves nearly all the work.
    """

    def plan(self, rng: np.random.Generator) -> Policy:
        """Return the policy of the next episode; all randomness comes from `rng`."""

    def learn(self, batch: Sequence[Feedback]) -> None:
        """Learn everything that has arrived since the last plan, possibly nothing."""


@runtime_checkable
class Algorithm(Protocol):
    """Settings from which any number of agents can be started."""

    def start(self, problem: Problem) -> Agent:
        """Return a new agent for `problem` that has seen nothing yet."""
