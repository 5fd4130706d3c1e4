"""Delays that depend on the outcome of an episode: on the first action, or on the reward.

The distributions of all outcomes are fed the same uniform number, so which action is taken changes the delay only as
far as the distributions differ.
"""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from belated._util.validate import check_generator, indices, integer, refuse
from belated.delays._base import NEVER, DelayDistribution, IndependentDelays, independent, independents, levels
from belated.types import Ints, Trajectory

NOTHING, FIRST_ACTION, RETURN = range(3)  # compiled into kernels: belated._kernels.jit counts this file among them
"""How compiled code computes the outcome: it is 0, the first action, or whether the return is positive."""


class OutcomeDelays(ABC):
    """Base class of delays that depend on the outcome of the episode: one distribution for each outcome.

    A class whose outcome compiled code can compute sets `looks_at` to one of the codes above; runs with any other are
    played in Python.
    """

    looks_at: ClassVar[int]
    """Not inherited: a derived class may define another outcome."""

    @property
    @abstractmethod
    def distributions_by_outcome(self) -> tuple[DelayDistribution, ...]:
        """The distributions, in the order of the outcomes."""

    @abstractmethod
    def outcome(self, trajectory: Trajectory) -> int:
        """Return the index of the distribution that delays `trajectory`."""

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
        delays = independents("distributions_by_outcome", self.distributions_by_outcome, "one for each outcome")
        return np.stack([delay.quantiles(uniform) for delay in delays], axis=1)

    def draw(self, rng: np.random.Generator, count: int, first: int, state: Any) -> tuple[Ints, Any]:
        """Return `sample(rng, count)` and no state."""
        return self.sample(rng, count), None


@dataclass(frozen=True)
class DelayByAction(OutcomeDelays):
    """The feedback of an episode whose first action is a has the delay `delays[a]`.

    >>> from belated.delays import Constant
    >>> delay = DelayByAction([Constant(0), Constant(9)])
    >>> delay.sample(np.random.default_rng(0), 2).tolist(), delay.label
    ([[0, 9], [0, 9]], 'byaction-constant-0-constant-9')
    """

    looks_at: ClassVar[int] = FIRST_ACTION

    delays: Sequence[IndependentDelays]

    def __post_init__(self) -> None:
        object.__setattr__(self, "delays", independents("delays", self.delays, "one for each action"))

    @property
    def distributions_by_outcome(self) -> tuple[DelayDistribution, ...]:
        return tuple(self.delays)

    def outcome(self, trajectory: Trajectory) -> int:
        return int(trajectory.actions[0])

    @property
    def label(self) -> str:
        """`byaction-` and the label of each distribution, or their number if there are more than three."""
        parts = [delay.label for delay in self.delays] if len(self.delays) <= 3 else [str(len(self.delays))]
        return "-".join(["byaction", *parts])

    def to_dict(self) -> dict[str, Any]:
        return {"distribution": "byaction", "delays": [delay.to_dict() for delay in self.delays]}


@dataclass(frozen=True)
class DelayByReward(OutcomeDelays):
    """The feedback of an episode has the delay `positive` if its return is positive, else `zero`.

    Conversions that are reported some time later, while their absence is never reported:

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
        return self.zero, self.positive

    def outcome(self, trajectory: Trajectory) -> int:
        return int(np.cumsum(trajectory.rewards)[-1] > 0.0)

    @property
    def label(self) -> str:
        return f"byreward-{self.zero.label}-{self.positive.label}"

    def to_dict(self) -> dict[str, Any]:
        return {"distribution": "byreward", "zero": self.zero.to_dict(), "positive": self.positive.to_dict()}


def next_delays(
    delay: DelayDistribution | OutcomeDelays, rng: np.random.Generator, count: int, first: int, state: Any
) -> tuple[Ints, Any]:
    """Return `delay.draw(...)`; raise InvalidInputError unless it is a pair of valid delays and a JSON state."""
    answer = delay.draw(rng, count, first, state)
    if not isinstance(answer, tuple) or len(answer) != 2:
        raise refuse(f"what {delay.label} draws", answer, "a pair of delays and state")
    delays, state = answer
    try:
        json.dumps(state, allow_nan=False)
    except (TypeError, ValueError):
        raise refuse(f"the state of {delay.label}", state, "plain values that JSON can hold") from None
    shape = (count,) if isinstance(delay, DelayDistribution) else (count, None)
    return indices(f"the delays that {delay.label} draws", delays, shape, NEVER + 1).copy(), state
