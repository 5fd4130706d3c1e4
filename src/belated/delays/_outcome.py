"""Delays that depend on what happened: on the action taken, or on the reward.

All distributions of one episode are fed the same uniform number, so that they are coupled like distributions anywhere else: which
action is taken changes the delay only as far as the distributions differ.
"""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from belated._util.validate import check_generator, indices, integer, refuse
from belated.delays._base import NEVER, DelayDistribution, IndependentDelays, independent, levels
from belated.types import Ints, Trajectory

NOTHING, FIRST_ACTION, RETURN = range(3)  # compiled into kernels: belated._kernels.jit counts this file among them
"""What compiled code looks at to tell which of several distributions counts: the outcome is 0, the first action, or whether the
rewards add up to more than zero."""


class OutcomeDelays(ABC):
    """Several distributions, of which the outcome of the episode chooses one.

    A class whose outcome compiled code can tell says so with `looks_at`, one of the codes above; runs with any other
    are played in Python.
    """

    looks_at: ClassVar[int]
    """Counts for the very class that has it: one derived from it may have another outcome."""

    @property
    @abstractmethod
    def distributions_by_outcome(self) -> tuple[DelayDistribution, ...]:
        """The distributions, in the order of the outcomes."""

    @abstractmethod
    def outcome(self, trajectory: Trajectory) -> int:
        """Return which of the distributions counts for `trajectory`."""

    @property
    @abstractmethod
    def label(self) -> str:
        """A short name that is safe in file names."""

    @abstractmethod
    def to_dict(self) -> dict[str, Any]:
        """Return plain values from which `delay_from_dict` builds the same distribution."""

    def sample(self, rng: np.random.Generator, size: int) -> Ints:
        """Return `size` delays for every outcome, shape (size, outcomes), from one uniform number each."""
        check_generator("rng", rng)
        uniform = levels(rng.random(integer("size", size, at_least=0)))
        distributions = [
            independent(f"distributions_by_outcome[{i}]", distribution)
            for i, distribution in enumerate(self.distributions_by_outcome)
        ]
        return np.stack([distribution.quantiles(uniform) for distribution in distributions], axis=1)

    def draw(self, rng: np.random.Generator, count: int, first: int, state: Any) -> tuple[Ints, Any]:
        """Return the delays of the next `count` episodes for every outcome; there is nothing to remember."""
        return self.sample(rng, count), None


@dataclass(frozen=True)
class DelayByAction(OutcomeDelays):
    """`distributions[a]` delays the feedback of an episode whose first action is a.

    >>> from belated.delays import Constant
    >>> distribution = DelayByAction([Constant(0), Constant(9)])
    >>> distribution.sample(np.random.default_rng(0), 2).tolist(), distribution.label
    ([[0, 9], [0, 9]], 'byaction-constant-0-constant-9')
    """

    looks_at: ClassVar[int] = FIRST_ACTION

    distributions: Sequence[IndependentDelays]

    def __post_init__(self) -> None:
        if not isinstance(self.distributions, list | tuple) or not self.distributions:
            raise refuse("distributions", self.distributions, "a list of delay distributions, one for each action")
        object.__setattr__(
            self,
            "distributions",
            tuple(
                independent(f"distributions[{i}]", distribution) for i, distribution in enumerate(self.distributions)
            ),
        )

    @property
    def distributions_by_outcome(self) -> tuple[DelayDistribution, ...]:
        """The distributions of the actions."""
        return tuple(self.distributions)

    def outcome(self, trajectory: Trajectory) -> int:
        """Return the first action."""
        return int(trajectory.actions[0])

    @property
    def label(self) -> str:
        """`byaction-` and each distribution, or how many there are if they are more than three."""
        parts = (
            [distribution.label for distribution in self.distributions]
            if len(self.distributions) <= 3
            else [str(len(self.distributions))]
        )
        return "-".join(["byaction", *parts])

    def to_dict(self) -> dict[str, Any]:
        """Return plain values from which `delay_from_dict` builds the same distribution."""
        return {
            "distribution": "byaction",
            "distributions": [distribution.to_dict() for distribution in self.distributions],
        }


@dataclass(frozen=True)
class DelayByReward(OutcomeDelays):
    """`zero` delays the feedback of an episode that earned nothing or less, `positive` that of any other.

    A conversion that is reported some time later, while the lack of one never is:

    >>> from belated.delays import Geometric, Lossy
    >>> never = Lossy(Geometric(mean=1), missing=1.0)
    >>> DelayByReward(zero=never, positive=Geometric(mean=20)).label
    'byreward-lossy-1-geometric-1-geometric-20'
    """

    looks_at: ClassVar[int] = RETURN

    zero: IndependentDelays
    positive: IndependentDelays

    def __post_init__(self) -> None:
        independent("zero", self.zero)
        independent("positive", self.positive)

    @property
    def distributions_by_outcome(self) -> tuple[DelayDistribution, ...]:
        """The distribution of nothing, and that of something."""
        return self.zero, self.positive

    def outcome(self, trajectory: Trajectory) -> int:
        """Return 1 if the rewards add up to more than zero."""
        return int(np.cumsum(trajectory.rewards)[-1] > 0.0)

    @property
    def label(self) -> str:
        """`byreward-` and both distributions."""
        return f"byreward-{self.zero.label}-{self.positive.label}"

    def to_dict(self) -> dict[str, Any]:
        """Return plain values from which `delay_from_dict` builds the same distribution."""
        return {"distribution": "byreward", "zero": self.zero.to_dict(), "positive": self.positive.to_dict()}


def next_delays(
    distribution: DelayDistribution | OutcomeDelays, rng: np.random.Generator, count: int, first: int, state: Any
) -> tuple[Ints, Any]:
    """Return what `distribution` draws, refusing what are not delays: a distribution of one's own may return anything."""
    answer = distribution.draw(rng, count, first, state)
    if not isinstance(answer, tuple) or len(answer) != 2:
        raise refuse(f"what {distribution.label} draws", answer, "a pair of delays and state")
    delays, state = answer
    try:
        json.dumps(state, allow_nan=False)
    except (TypeError, ValueError):
        raise refuse(f"the state of {distribution.label}", state, "plain values that JSON can hold") from None
    shape = (count,) if isinstance(distribution, DelayDistribution) else (count, None)
    return indices(f"the delays that {distribution.label} draws", delays, shape, NEVER + 1).copy(), state
