"""Delays that depend on what happened: on the action taken, or on the reward.

All laws of one episode are fed the same uniform number, so that they are coupled like laws anywhere else: which
action is taken changes the delay only as far as the laws differ.
"""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from belated.delays.base import NEVER, DelayLaw, IndependentLaw, independent, levels
from belated.types import Ints, Trajectory
from belated.validate import check_generator, indices, integer, refuse

NOTHING, FIRST_ACTION, RETURN = range(3)  # compiled into kernels: belated.compiled counts this file among them
"""What compiled code looks at to tell which of several laws counts: the outcome is 0, the first action, or whether the
rewards add up to more than zero."""


class OutcomeLaw(ABC):
    """Several laws, of which the outcome of the episode chooses one.

    A class whose outcome compiled code can tell says so with `looks_at`, one of the codes above; runs with any other
    are played in Python.
    """

    looks_at: ClassVar[int]
    """Counts for the very class that has it: one derived from it may have another outcome."""

    @property
    @abstractmethod
    def laws_by_outcome(self) -> tuple[DelayLaw, ...]:
        """The laws, in the order of the outcomes."""

    @abstractmethod
    def outcome(self, trajectory: Trajectory) -> int:
        """Return which of the laws counts for `trajectory`."""

    @property
    @abstractmethod
    def label(self) -> str:
        """A short name that is safe in file names."""

    @abstractmethod
    def to_dict(self) -> dict[str, Any]:
        """Return plain values from which `law_from_dict` builds the same law."""

    def sample(self, rng: np.random.Generator, size: int) -> Ints:
        """Return `size` delays for every outcome, shape (size, outcomes), from one uniform number each."""
        check_generator("rng", rng)
        uniform = levels(rng.random(integer("size", size, at_least=0)))
        laws = [independent(f"laws_by_outcome[{i}]", law) for i, law in enumerate(self.laws_by_outcome)]
        return np.stack([law.quantiles(uniform) for law in laws], axis=1)

    def draw(self, rng: np.random.Generator, count: int, first: int, state: Any) -> tuple[Ints, Any]:
        """Return the delays of the next `count` episodes for every outcome; there is nothing to remember."""
        return self.sample(rng, count), None


@dataclass(frozen=True)
class DelayByAction(OutcomeLaw):
    """`laws[a]` delays the feedback of an episode whose first action is a.

    >>> from belated.delays import Constant
    >>> law = DelayByAction([Constant(0), Constant(9)])
    >>> law.sample(np.random.default_rng(0), 2).tolist(), law.label
    ([[0, 9], [0, 9]], 'byaction-constant-0-constant-9')
    """

    looks_at: ClassVar[int] = FIRST_ACTION

    laws: Sequence[IndependentLaw]

    def __post_init__(self) -> None:
        if not isinstance(self.laws, list | tuple) or not self.laws:
            raise refuse("laws", self.laws, "a list of delay laws, one for each action")
        object.__setattr__(self, "laws", tuple(independent(f"laws[{i}]", law) for i, law in enumerate(self.laws)))

    @property
    def laws_by_outcome(self) -> tuple[DelayLaw, ...]:
        """The laws of the actions."""
        return tuple(self.laws)

    def outcome(self, trajectory: Trajectory) -> int:
        """Return the first action."""
        return int(trajectory.actions[0])

    @property
    def label(self) -> str:
        """`byaction-` and each law, or how many there are if they are more than three."""
        parts = [law.label for law in self.laws] if len(self.laws) <= 3 else [str(len(self.laws))]
        return "-".join(["byaction", *parts])

    def to_dict(self) -> dict[str, Any]:
        """Return plain values from which `law_from_dict` builds the same law."""
        return {"law": "byaction", "laws": [law.to_dict() for law in self.laws]}


@dataclass(frozen=True)
class DelayByReward(OutcomeLaw):
    """`zero` delays the feedback of an episode that earned nothing or less, `positive` that of any other.

    A conversion that is reported some time later, while the lack of one never is:

    >>> from belated.delays import Geometric, Lossy
    >>> never = Lossy(Geometric(mean=1), missing=1.0)
    >>> DelayByReward(zero=never, positive=Geometric(mean=20)).label
    'byreward-lossy-1-geometric-1-geometric-20'
    """

    looks_at: ClassVar[int] = RETURN

    zero: IndependentLaw
    positive: IndependentLaw

    def __post_init__(self) -> None:
        independent("zero", self.zero)
        independent("positive", self.positive)

    @property
    def laws_by_outcome(self) -> tuple[DelayLaw, ...]:
        """The law of nothing, and that of something."""
        return self.zero, self.positive

    def outcome(self, trajectory: Trajectory) -> int:
        """Return 1 if the rewards add up to more than zero."""
        return int(np.cumsum(trajectory.rewards)[-1] > 0.0)

    @property
    def label(self) -> str:
        """`byreward-` and both laws."""
        return f"byreward-{self.zero.label}-{self.positive.label}"

    def to_dict(self) -> dict[str, Any]:
        """Return plain values from which `law_from_dict` builds the same law."""
        return {"law": "byreward", "zero": self.zero.to_dict(), "positive": self.positive.to_dict()}


def next_delays(
    law: DelayLaw | OutcomeLaw, rng: np.random.Generator, count: int, first: int, state: Any
) -> tuple[Ints, Any]:
    """Return what `law` draws, refusing what are not delays: a law of one's own may return anything."""
    answer = law.draw(rng, count, first, state)
    if not isinstance(answer, tuple) or len(answer) != 2:
        raise refuse(f"what {law.label} draws", answer, "a pair of delays and state")
    delays, state = answer
    try:
        json.dumps(state, allow_nan=False)
    except (TypeError, ValueError):
        raise refuse(f"the state of {law.label}", state, "plain values that JSON can hold") from None
    shape = (count,) if isinstance(law, DelayLaw) else (count, None)
    return indices(f"the delays that {law.label} draws", delays, shape, NEVER + 1).copy(), state
