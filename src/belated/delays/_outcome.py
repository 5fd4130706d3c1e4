"""Delays that depend on the outcome of an episode: the first action, the return, or your own choice.

The distributions of all outcomes use the same uniform number, so the action changes the delay only as far as the
distributions differ.
"""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, fields
from typing import Any, ClassVar

import numpy as np

from belated._util.validate import check_generator, indices, integer, refuse
from belated.delays._base import (
    NEVER,
    DelayDistribution,
    Described,
    IndependentDelays,
    independent,
    independents,
    levels,
)
from belated.types import Ints, Trajectory

NOTHING, FIRST_ACTION, RETURN = range(3)  # compiled into kernels: belated._kernels.jit counts this file among them
"""Codes of the outcomes that compiled code can compute: 0, the first action, or whether the return is positive."""


@dataclass(frozen=True, repr=False)
class OutcomeDelays(Described, ABC):
    """Base class of delays that depend on the outcome of the episode: one distribution for each outcome.

    Derive from it as a frozen dataclass whose fields are the distributions, and write `outcome`. Optionally write
    `checked` to validate the fields, and `label` if the default one is too long. For example, feedback that is late if
    the last step of an episode had a reward:

    >>> from belated.delays import Constant
    >>> @dataclass(frozen=True)
    ... class LateAtTheGoal(OutcomeDelays):
    ...     elsewhere: IndependentDelays
    ...     goal: IndependentDelays
    ...
    ...     def outcome(self, trajectory):
    ...         return int(trajectory.rewards[-1] > 0)
    >>> LateAtTheGoal(Constant(0), Constant(9)).label
    'lateatthegoal-constant-0-constant-9'

    A class whose outcome compiled code can compute sets `looks_at` to one of the codes above; runs with any other are
    played in Python.
    """

    looks_at: ClassVar[int]
    """Not inherited: a derived class may define another outcome."""

    @property
    def distributions_by_outcome(self) -> tuple[DelayDistribution, ...]:
        """The distributions, in the order of the outcomes; by default those among the fields."""
        values = [getattr(self, field.name) for field in fields(self)]
        flat = [each for value in values for each in (value if isinstance(value, list | tuple) else [value])]
        return tuple(each for each in flat if isinstance(each, DelayDistribution))

    @abstractmethod
    def outcome(self, trajectory: Trajectory) -> int:
        """Return the index of the delay distribution for `trajectory`, the steps that arrive together.

        These are all steps of an episode, with their actions and rewards as played. An episode of a simulator may end
        before the horizon. `LateFeedback` with the unit "reward" calls this for every step: `trajectory.first` is its
        number. The states are row numbers in a table, features in a simulator, and observations in `LateFeedback`.
        """

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

    def checked(self) -> dict[str, Any]:
        return {"delays": independents("delays", self.delays, "one for each action")}

    def outcome(self, trajectory: Trajectory) -> int:
        return int(trajectory.actions[0])

    @property
    def label(self) -> str:
        """`byaction-` and the label of each distribution, or their number if there are more than three."""
        return self._label(*([each.label for each in self.delays] if len(self.delays) <= 3 else [len(self.delays)]))


@dataclass(frozen=True)
class DelayByReward(OutcomeDelays):
    """The feedback of an episode has the delay `positive` if its return is positive, else `zero`.

    Conversions that are reported later, while their absence is never reported:

    >>> from belated.delays import Geometric, Lossy
    >>> never = Lossy(Geometric(mean=1), missing=1.0)
    >>> DelayByReward(zero=never, positive=Geometric(mean=20)).label
    'byreward-lossy-1-geometric-1-geometric-20'
    """

    looks_at: ClassVar[int] = RETURN

    zero: IndependentDelays
    positive: IndependentDelays

    def checked(self) -> dict[str, Any]:
        return {name: independent(name, getattr(self, name)) for name in ("zero", "positive")}

    def outcome(self, trajectory: Trajectory) -> int:
        return int(np.cumsum(trajectory.rewards)[-1] > 0.0)


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
