"""What an agent on features and an environment that can only be sampled say to each other."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol

from belated.types import Floats, Ints

#: What a trajectory can bring.
NEWS = ("all", "states", "rewards")


class SparseVector(NamedTuple):
    """The features ψ(s) of one observation that are not zero."""

    indices: Ints
    """Which they are, ascending, each once."""
    values: Floats


class FeatureMap(Protocol):
    """Turns an observation into features; φ(s, a) is ψ(s) in the block of action a."""

    @property
    def size(self) -> int:
        """k, the number of features of a state."""

    def encode(self, observation: Any) -> SparseVector:
        """Return the features of one observation."""


@dataclass(frozen=True, kw_only=True)
class SampledProblem:
    """What an agent is told of an environment that can only be reset and stepped."""

    actions: int
    horizon: int
    """H: after so many steps an episode is cut, which is not the same as reaching a terminal state."""
    features: FeatureMap
    reward_range: tuple[float, float]
    """The least and the largest reward of one step."""
    homogeneous: bool = True
    """Whether dynamics and rewards do not depend on the step."""


@dataclass(frozen=True)
class SampledTrajectory:
    """One episode of n <= H steps, or a part of one: states[0..n], actions and rewards[0..n-1]."""

    states: Sequence[SparseVector]
    actions: Ints
    rewards: Floats
    terminated: bool
    """Whether the last state is terminal, worth nothing; if not, the episode was cut by the horizon."""
    first: int = 0
    """Which step of the episode the first one is."""
    news: str = "all"
    """What is new: "all" of it, the "states" before their rewards, or the "rewards" of states that came before."""


class ActingPolicy(Protocol):
    """A policy on features: asked step by step, since there is no table of all states."""

    def act(self, step: int, state: SparseVector) -> int:
        """Return the action at `step` in the state with the features `state`."""
