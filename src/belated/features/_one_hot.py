"""`OneHot`: one feature per state, for observations made of integers."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, ClassVar, Self

import numpy as np

from belated._util.validate import indices, integer, refuse
from belated.errors import InvalidInputError
from belated.features._base import Features, Seen, checked_vector, frozen, integer_sizes
from belated.types import Floats, Ints, SparseVector

MOST_STATES = 1_000_000


@dataclass(frozen=True, kw_only=True)
class OneHot(Features):
    """One feature for every combination of the integers in an observation: the tabular case.

    >>> OneHot(sizes=(4, 3)).encode((2, 1)).indices.tolist()
    [7]
    """

    kind: ClassVar[str] = "one-hot"

    sizes: tuple[int, ...] | None = None
    """Number of values of each integer; None to take it from the environment."""
    start: tuple[int, ...] | None = None
    """The minimum of each number, 0 by default."""

    def __post_init__(self) -> None:
        if self.sizes is None:
            if self.start is not None:
                raise refuse("start", self.start, "left out together with sizes")
            return
        sizes = indices("sizes", self.sizes, (None,), MOST_STATES + 1).tolist()
        for size in sizes:
            integer("sizes", size, at_least=1)
        if not sizes or math.prod(sizes) > MOST_STATES:
            raise refuse("sizes", self.sizes, f"numbers whose product is at most {MOST_STATES}")
        start = tuple(integer("start", first) for first in self.start or (0,) * len(sizes))
        if len(start) != len(sizes):
            raise refuse("start", start, f"{len(sizes)} numbers, like sizes")
        object.__setattr__(self, "sizes", tuple(sizes))
        object.__setattr__(self, "start", start)

    def fitted(self, seen: Seen) -> Self:
        """Return the map with the environment's sizes, unless they were given."""
        if self.sizes is not None:
            return self
        found = integer_sizes(seen.space)
        if found is None:
            raise refuse("features", "one-hot", f"another map: not all numbers of {seen.space} are integers")
        return replace(self, start=found[0], sizes=found[1])

    @cached_property
    def _shape(self) -> tuple[tuple[int, ...], tuple[int, ...]]:
        if self.sizes is None or self.start is None:
            raise InvalidInputError("sizes of 'one-hot' features must be given, or fitted to an environment")
        return self.sizes, self.start

    @cached_property
    def _arrays(self) -> tuple[Ints, Floats]:
        return frozen(np.arange(self.size)), frozen(np.ones(1))

    @property
    def size(self) -> int:
        return math.prod(self._shape[0])

    def encode(self, observation: Any) -> SparseVector:
        sizes, start = self._shape
        every, one = self._arrays
        if len(sizes) == 1 and isinstance(observation, int | np.integer):
            row = int(observation) - start[0]
            if not 0 <= row < sizes[0]:
                raise _outside(observation, 0, start[0], sizes[0])
            return SparseVector(every[row : row + 1], one)
        row = 0
        for i, number in enumerate(checked_vector(observation, len(sizes)).tolist()):
            value = int(number)
            if value != number or not 0 <= value - start[i] < sizes[i]:
                raise _outside(number, i, start[i], sizes[i])
            row = row * sizes[i] + value - start[i]
        return SparseVector(every[row : row + 1], one)


def _outside(number: Any, where: int, start: int, size: int) -> InvalidInputError:
    expected = f"an integer in {start}..{start + size - 1}"
    return InvalidInputError(f"an observation must have {expected} at index {where}, got {number}")
