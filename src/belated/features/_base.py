"""The base classes of feature maps: frozen settings that turn an observation into a feature vector."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass, fields, replace
from functools import cached_property
from typing import Any, ClassVar, Self

import numpy as np

from belated._util.plugins import spelled
from belated._util.validate import array, integer, refuse
from belated.errors import InvalidInputError
from belated.features._spaces import Seen, stated_ranges, vector
from belated.types import Floats, Ints, SparseRows, SparseVector

#: The maximum number of dense features: every plan factors matrices of that size.
MOST_DENSE = 10_000


@dataclass(frozen=True, kw_only=True)
class Features(ABC):
    """Turns an observation into the feature vector ψ(s) of a state.

    Settings that depend on the environment, such as the ranges of the observations, may be left out: `fitted` fills
    them in.
    """

    kind: ClassVar[str]
    """The name that configuration files use."""

    @property
    @abstractmethod
    def size(self) -> int:
        """k, the number of features of a state."""

    @abstractmethod
    def encode(self, observation: Any) -> SparseVector | SparseRows:
        """Return the nonzero features of one observation."""

    def fitted(self, seen: Seen) -> Self:
        """Return the same map with the settings that were left out."""
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
    """The minimum of each number; None: from the environment."""
    high: tuple[float, ...] | None = None
    """The maximum of each number; None: from the environment."""

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
        """Return the same map with the ranges of the environment, unless they were given."""
        if self.low is not None:
            count = stated_ranges(seen.space)[0].size
            if len(self.low) != count:
                raise refuse("low", self.low, f"{count} numbers, as many as an observation has")
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
    # the sum of squares takes a third of the time of isfinite, which is needed only if the sum is not finite
    if not math.isfinite(numbers.dot(numbers)) and not np.isfinite(numbers).all():
        where = int(np.argmin(np.isfinite(numbers)))
        raise InvalidInputError(f"an observation must be finite, got {numbers[where]} at index {where}")
    return numbers


class Dense:
    """Makes a `SparseVector` of all features, for maps without zeros."""

    def __init__(self, size: int, kind: str) -> None:
        if size > MOST_DENSE:
            raise InvalidInputError(f"{kind!r} must have at most {MOST_DENSE} features, got {size}; use tiles instead")
        self.indices: Ints = frozen(np.arange(size))

    def __call__(self, values: Floats) -> SparseVector:
        return SparseVector(self.indices, values)


def frozen(values: Any) -> Any:
    values.flags.writeable = False
    return values
