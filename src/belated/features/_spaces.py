"""The numbers in an observation: how many there are, between which bounds, and which are whole."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from belated._util.validate import refuse
from belated.errors import InvalidInputError
from belated.types import Floats

#: A bound beyond this is as good as none: some environments write the largest float for it.
UNBOUNDED = 1e6


def vector(observation: Any) -> Floats:
    """Return all numbers of an observation: arrays row by row, tuples in order, dictionaries by key.

    >>> vector({"b": 3, "a": np.array([[1, 2]])}).tolist()
    [1.0, 2.0, 3.0]
    """
    try:
        if isinstance(observation, np.ndarray):
            return np.array(observation, dtype=np.float64).reshape(-1)
        return np.array(list(_numbers(observation)), dtype=np.float64)
    except (TypeError, ValueError):
        raise refuse("an observation", observation, "numbers, or arrays, tuples or dictionaries of numbers") from None


def _numbers(observation: Any) -> Iterator[float]:
    if isinstance(observation, dict):
        for key in sorted(observation):
            yield from _numbers(observation[key])
    elif isinstance(observation, tuple | list):
        for part in observation:
            yield from _numbers(part)
    elif isinstance(observation, np.ndarray):
        yield from observation.reshape(-1).tolist()
    else:
        yield float(observation)


class Ranges(NamedTuple):
    """Between which bounds each number of an observation lies."""

    low: tuple[float, ...]
    high: tuple[float, ...]
    whole: tuple[bool, ...]
    """Whether the number is one of the integers from `low` to `high`."""


class Seen:
    """What is known of the observations of an environment before anything has been learned.

    Bounds that the space does not state are those of the observations that `play` returns, which is asked only where
    they are needed.
    """

    def __init__(self, space: Any, play: Callable[[], Sequence[Any]], actions: int = 0) -> None:
        self.space, self.actions = space, actions
        self._play = play

    def check(self) -> None:
        """Refuse a space that is not made of numbers."""
        stated_ranges(self.space)

    @cached_property
    def observations(self) -> Sequence[Any]:
        """Observations of the environment."""
        return self._play()

    @cached_property
    def _rows(self) -> Floats:
        return np.stack([vector(observation) for observation in self.observations])

    @property
    def spans(self) -> Floats:
        """How far the least and the largest number observed are apart; infinite where that is not known."""
        if not len(self.observations):
            return np.full(stated_ranges(self.space)[0].size, np.inf)
        spans = np.ptp(self._rows, axis=0)
        return np.where(spans > 0.0, spans, np.inf)

    @cached_property
    def ranges(self) -> Ranges:
        """The bounds of the space; where it has none, the least and the largest number observed."""
        low, high, whole = stated_ranges(self.space)
        if (low <= -UNBOUNDED).any() or (high >= UNBOUNDED).any():
            low = np.where(low > -UNBOUNDED, low, self._rows.min(axis=0))
            high = np.where(high < UNBOUNDED, high, self._rows.max(axis=0))
        flat = ~(low < high)  # a number that does not vary still needs a range around it
        low, high = np.where(flat, low - 0.5, low), np.where(flat, high + 0.5, high)
        return Ranges(tuple(low.tolist()), tuple(high.tolist()), tuple((whole & ~flat).tolist()))


def stated_ranges(space: Any) -> tuple[Floats, Floats, Any]:
    """Return the bounds that a space of observations states for each number, and which numbers are whole."""
    from gymnasium import spaces

    if isinstance(space, spaces.Tuple | spaces.Dict):
        names = range(len(space)) if isinstance(space, spaces.Tuple) else sorted(space.keys())
        parts = [stated_ranges(space[name]) for name in names]  # type: ignore[index]
        if not parts:
            raise refuse("the observation space", space, "a space with at least one number")
        return tuple(np.concatenate(part) for part in zip(*parts, strict=True))  # type: ignore[return-value]
    if isinstance(space, spaces.Discrete):
        low, high = np.array([space.start]), np.array([space.start + space.n - 1])
    elif isinstance(space, spaces.MultiDiscrete):
        low = space.start.reshape(-1)
        high = low + space.nvec.reshape(-1) - 1
    elif isinstance(space, spaces.MultiBinary):
        low, high = np.zeros(np.prod(space.shape, dtype=int)), np.ones(np.prod(space.shape, dtype=int))
    elif isinstance(space, spaces.Box):
        low, high = space.low.reshape(-1), space.high.reshape(-1)
    else:
        raise refuse("the observation space", space, "Discrete, MultiDiscrete, MultiBinary, Box, Tuple or Dict")
    if not low.size:
        raise refuse("the observation space", space, "a space with at least one number")
    whole = not isinstance(space, spaces.Box)
    return low.astype(np.float64), high.astype(np.float64), np.full(low.size, whole)


def whole_sizes(space: Any) -> tuple[tuple[int, ...], tuple[int, ...]] | None:
    """Return the least value and the number of values of each number, if all of them are whole."""
    low, high, whole = stated_ranges(space)
    if not whole.all():
        return None
    sizes = (high - low + 1).astype(int)
    return tuple(low.astype(int).tolist()), tuple(sizes.tolist())


def outside(space: Any) -> Callable[[Any], str | None]:
    """Return a function that tells what is wrong with an observation, None if it is in `space`.

    It looks at shapes and bounds only, in a fraction of the time of `space.contains`: whether the numbers have the
    right type matters to nobody here.
    """
    low, high, _ = stated_ranges(space)
    bounds = list(zip(low.tolist(), high.tolist(), strict=True))

    def check(observation: Any) -> str | None:
        if isinstance(observation, np.ndarray) and observation.dtype.kind in "fiub":
            numbers = observation.reshape(-1).tolist()
        elif isinstance(observation, int | np.integer):
            numbers = [observation]
        else:
            try:
                numbers = vector(observation).tolist()
            except InvalidInputError as error:
                return str(error)
        if len(numbers) != len(bounds):
            return f"{len(numbers)} numbers instead of {len(bounds)}"
        # a loop: arrays are as short as this makes it the faster one, and a number that is not one is never inside
        for where, (number, (least, most)) in enumerate(zip(numbers, bounds, strict=True)):
            if not least <= number <= most:
                return f"{number:g} at index {where}, which must be within [{least:g}, {most:g}]"
        return None

    return check
