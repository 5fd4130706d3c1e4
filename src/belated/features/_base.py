"""The base classes of feature maps: immutable settings that map an observation to a feature vector."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, fields, replace
from functools import cached_property
from typing import Any, ClassVar, NamedTuple, Self

import numpy as np

from belated._util.plugins import spelled
from belated._util.validate import LARGEST_NUMBER, array, integer, refuse
from belated.errors import InvalidInputError
from belated.types import Floats, Ints, SparseRows, SparseVector

#: A bound beyond this counts as none: some environments use the maximum float.
UNBOUNDED = 1e6


def vector(observation: Any) -> Floats:
    """Return all numbers of an observation: arrays row by row, tuples in order, dictionaries by key.

    >>> vector({"b": 3, "a": np.array([[1, 2]])}).tolist()
    [1.0, 2.0, 3.0]
    """
    try:
        if type(observation) is np.ndarray and observation.dtype.kind in "fiub":
            return np.array(observation, dtype=np.float64).reshape(-1)
        return np.array(list(_numbers(observation)), dtype=np.float64)
    except (TypeError, ValueError, OverflowError, RecursionError):
        raise refuse("an observation", observation, "numbers, or arrays, tuples or dictionaries of numbers") from None


def _numbers(observation: Any) -> Iterator[float]:
    if isinstance(observation, dict):
        for key in sorted(observation):
            yield from _numbers(observation[key])
    elif isinstance(observation, tuple | list):
        for part in observation:
            yield from _numbers(part)
    elif isinstance(observation, np.ndarray):
        for number in observation.reshape(-1).tolist():
            yield from _numbers(number)
    elif isinstance(observation, str | bytes):
        raise TypeError
    else:
        yield float(observation)


class Ranges(NamedTuple):
    """The range of each number of an observation."""

    low: tuple[float, ...]
    high: tuple[float, ...]
    integers: tuple[bool, ...]
    """Whether the number is an integer."""


class Seen:
    """What is known about an environment's observations before learning: the space, and samples of random play.

    `play` is called only if the space is unbounded, or if a map needs samples.
    """

    def __init__(self, space: Any, play: Callable[[], Sequence[Any]], actions: int = 0) -> None:
        self.space, self.actions = space, actions
        self._play = play

    def check(self) -> None:
        """Raise InvalidInputError unless the space is made of numbers and text."""
        check_space(self.space)

    @cached_property
    def observations(self) -> Sequence[Any]:
        return self._play()

    @cached_property
    def _rows(self) -> Floats:
        return np.stack([vector(observation) for observation in self.observations])

    @property
    def spans(self) -> Floats:
        """The observed maximum minus minimum of each number; infinite if unknown."""
        if not len(self.observations):
            return np.full(stated_ranges(self.space)[0].size, np.inf)
        spans = np.ptp(self._rows, axis=0)
        return np.where(spans > 0.0, spans, np.inf)

    @cached_property
    def ranges(self) -> Ranges:
        """The bounds of the space; if it has none, the observed minimum and maximum."""
        low, high, integers = stated_ranges(self.space)
        if (low <= -UNBOUNDED).any() or (high >= UNBOUNDED).any():
            low = np.where(low > -UNBOUNDED, low, self._rows.min(axis=0))
            high = np.where(high < UNBOUNDED, high, self._rows.max(axis=0))
        flat = ~(low < high)  # a constant number still needs a range
        low, high = np.where(flat, low - 0.5, low), np.where(flat, high + 0.5, high)
        return Ranges(tuple(low.tolist()), tuple(high.tolist()), tuple((integers & ~flat).tolist()))


def stated_ranges(space: Any) -> tuple[Floats, Floats, Any]:
    """Return the bounds of each number of an observation space, and which numbers are integers."""
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
        kinds = "Discrete, MultiDiscrete, MultiBinary, Box, Tuple or Dict"
        raise refuse("the observation space", space, f"{kinds}, or with hashed features Text")
    if not low.size:
        raise refuse("the observation space", space, "a space with at least one number")
    integers = np.full(low.size, not isinstance(space, spaces.Box))
    return low.astype(np.float64), high.astype(np.float64), integers


def has_text(space: Any) -> bool:
    """Whether observations contain text."""
    from gymnasium import spaces

    if isinstance(space, spaces.Tuple | spaces.Dict):
        return any(map(has_text, space.values() if isinstance(space, spaces.Dict) else space))
    return isinstance(space, spaces.Text)


def check_space(space: Any) -> None:
    """Raise InvalidInputError unless observations are made of numbers and text."""
    from gymnasium import spaces

    if not has_text(space):
        stated_ranges(space)
    elif not isinstance(space, spaces.Text):
        for part in space.values() if isinstance(space, spaces.Dict) else space:
            check_space(part)


def integer_sizes(space: Any) -> tuple[tuple[int, ...], tuple[int, ...]] | None:
    """Return the minimum and the number of values of each number; None unless all are integers."""
    low, high, integers = stated_ranges(space)
    if not integers.all():
        return None
    sizes = (high - low + 1).astype(int)
    return tuple(low.astype(int).tolist()), tuple(sizes.tolist())


class Fault(NamedTuple):
    """An invalid observation."""

    message: str
    fatal: bool
    """Whether the observation cannot be used; otherwise a real number is merely outside its stated bounds."""


def fault_finder(space: Any) -> Callable[[Any], Fault | None]:
    """Return a function that returns the fault of an observation, None if it is in `space`.

    It checks only the number of entries and their bounds, much faster than `space.contains`.
    """
    if has_text(space):
        return _text_fault_finder(space)
    minima, maxima, integers = stated_ranges(space)
    bounds = list(zip(minima.tolist(), maxima.tolist(), strict=True))

    def find(observation: Any) -> Fault | None:
        if type(observation) is np.ndarray and observation.dtype.kind in "fiub":
            numbers = observation.reshape(-1).tolist()
        elif isinstance(observation, int | np.integer):
            numbers = [observation]
        else:
            try:
                numbers = vector(observation).tolist()
            except InvalidInputError as error:
                return Fault(str(error), fatal=True)
        if len(numbers) != len(bounds):
            return Fault(f"{len(numbers)} numbers instead of {len(bounds)}", fatal=True)
        beyond = None
        # a loop is faster for short observations; nan is never inside
        for where, (number, (low, high)) in enumerate(zip(numbers, bounds, strict=True)):
            if low <= number <= high and -LARGEST_NUMBER <= number <= LARGEST_NUMBER:
                continue
            said = f"{number:g} at index {where}, which must be within [{low:g}, {high:g}]"
            if integers[where] or not -LARGEST_NUMBER <= number <= LARGEST_NUMBER:
                return Fault(said if math.isfinite(high - low) else f"{number:g} at index {where}", fatal=True)
            beyond = beyond or Fault(said, fatal=False)
        return beyond

    return find


def _text_fault_finder(space: Any) -> Callable[[Any], Fault | None]:
    """Return the same for a space with text; any string is accepted, since few spaces state their characters."""
    from gymnasium import spaces

    if isinstance(space, spaces.Text):
        return lambda given: None if isinstance(given, str) else Fault(f"{given!r:.80} instead of text", fatal=True)
    kind: Any = dict if isinstance(space, spaces.Dict) else tuple
    keys = list(space.keys()) if kind is dict else range(len(space))
    inner = {key: fault_finder(space[key]) for key in keys}

    def find(observation: Any) -> Fault | None:
        if not isinstance(observation, kind) or len(observation) != len(inner):
            return Fault(f"{observation!r:.80}", fatal=True)
        for key, find_inner in inner.items():
            if kind is dict and key not in observation:
                return Fault(f"no {key!r}", fatal=True)
            fault = find_inner(observation[key])
            if fault is not None:
                return fault._replace(message=f"{fault.message} in {key!r}")
        return None

    return find


#: The maximum number of dense features: every plan factors matrices of that size.
MOST_DENSE = 10_000


@dataclass(frozen=True, kw_only=True)
class Features(ABC):
    """Maps an observation to the feature vector ψ(s) of a state.

    Settings that depend on the environment, such as the ranges of the observations, may be left out: `fitted` fills
    them in.
    """

    kind: ClassVar[str]
    """The name in configuration files."""

    @property
    @abstractmethod
    def size(self) -> int:
        """k, the number of features of a state."""

    @abstractmethod
    def encode(self, observation: Any) -> SparseVector | SparseRows:
        """Return the nonzero features of one observation."""

    def encode_rows(self, numbers: Floats) -> SparseRows:
        """Return the nonzero features of many observations, given as one row of numbers each."""
        found = [self.encode(row) for row in numbers]
        return SparseRows(
            np.cumsum([0, *(each.indices.size for each in found)]),
            np.concatenate([np.zeros(0, np.int64), *(each.indices for each in found)]),
            np.concatenate([np.zeros(0), *(each.values for each in found)]),
        )

    def fitted(self, seen: Seen) -> Self:
        """Return the map with missing settings filled in from the environment."""
        return self

    def __getstate__(self) -> dict[str, Any]:
        return {field.name: getattr(self, field.name) for field in fields(self)}

    def to_dict(self) -> dict[str, Any]:
        """Return plain values from which `features_from_dict` makes the same map."""
        values = {field.name: getattr(self, field.name) for field in fields(self)}
        kind = spelled(type(self), getattr(self, "kind", type(self).__name__))
        return {"features": kind, **{name: _plain(value) for name, value in values.items() if value is not None}}


def _plain(value: Any) -> Any:
    return [_plain(each) for each in value] if isinstance(value, tuple) else value


@dataclass(frozen=True, kw_only=True)
class Bounded(Features):
    """A map of the numbers in an observation, each clipped to its range from `low` to `high`."""

    low: tuple[float, ...] | None = None
    """The minimum of each number; None to take it from the environment."""
    high: tuple[float, ...] | None = None
    """The maximum of each number; None to take it from the environment."""

    def __post_init__(self) -> None:
        if (self.low is None) != (self.high is None):
            raise refuse("low and high", (self.low, self.high), "both given, or both left out")
        if self.low is not None:
            low = array("low", self.low, (None,))
            high = array("high", self.high, (low.size,))
            integer("the number of bounds", low.size, at_least=1)
            if not (low < high).all():
                where = int(np.argmin(low < high))
                raise InvalidInputError(f"low must be below high, got {low[where]:g} and {high[where]:g} at {where}")
            object.__setattr__(self, "low", tuple(low.tolist()))
            object.__setattr__(self, "high", tuple(high.tolist()))

    def fitted(self, seen: Seen) -> Self:
        """Return the map with the environment's ranges, unless they were given."""
        if self.low is not None:
            count = stated_ranges(seen.space)[0].size
            if len(self.low) != count:
                raise refuse("low", self.low, f"{count} numbers, the length of an observation")
            return self
        return replace(self, low=seen.ranges.low, high=seen.ranges.high)

    @property
    def numbers(self) -> int:
        return len(self.bounds[0])

    @cached_property
    def bounds(self) -> tuple[Floats, Floats]:
        """The minimum of each number and the width of its range."""
        if self.low is None or self.high is None:
            raise InvalidInputError(
                f"low and high of {self.kind!r} features must be given, or fitted to an environment"
            )
        low, high = np.array(self.low), np.array(self.high)
        return low, high - low

    def unit(self, observation: Any) -> Floats:
        """Return the numbers of an observation, scaled from their ranges to [0, 1] and clipped."""
        low, width = self.bounds
        given = checked_vector(observation, low.size)
        shares: Floats = np.minimum(np.maximum((given - low) / width, 0.0), 1.0)
        return shares


def checked_vector(observation: Any, count: int) -> Floats:
    """Return the numbers of an observation; raise InvalidInputError unless they are `count` and finite."""
    numbers = vector(observation)
    if numbers.size != count:
        raise InvalidInputError(f"an observation must have {count} numbers, got {numbers.size}")
    # the sum of squares is three times faster than isfinite, which is needed only if the sum is not finite
    if not math.isfinite(numbers.dot(numbers)) and not np.isfinite(numbers).all():
        where = int(np.argmin(np.isfinite(numbers)))
        raise InvalidInputError(f"an observation must be finite, got {numbers[where]} at index {where}")
    return numbers


class Dense:
    """Creates a `SparseVector` of all features, for dense maps."""

    def __init__(self, size: int, kind: str) -> None:
        if size > MOST_DENSE:
            raise InvalidInputError(f"{kind!r} must have at most {MOST_DENSE} features, got {size}; use tiles instead")
        self.indices: Ints = frozen(np.arange(size))

    def __call__(self, values: Floats) -> SparseVector:
        return SparseVector(self.indices, values)

    def rows(self, values: Floats) -> SparseRows:
        """Return many vectors, one for each row of `values`."""
        count, k = values.shape
        return SparseRows(np.arange(count + 1) * k, np.tile(self.indices, count), values.ravel())


def frozen(values: Any) -> Any:
    values.flags.writeable = False
    return values
