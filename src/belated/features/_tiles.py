"""`Tiles`: tile coding, the map to begin with where observations are numbers of any kind."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import combinations
from typing import Any, ClassVar, NamedTuple, Self

import numpy as np

from belated._kernels.jit import entry_point
from belated._util.validate import choice, flag, integer, refuse
from belated.errors import InvalidInputError
from belated.features._base import Bounded, frozen
from belated.features._spaces import Seen, vector
from belated.sampled import SparseVector
from belated.types import Floats, Ints

JOINS = ("automatic", "all", "pairs", "single")
MOST_TILES = 10_000_000
#: Integers with at most so many values have a tile for each value; others are cut into bins like any number.
MOST_VALUES = 64


@dataclass(frozen=True, kw_only=True)
class Tiles(Bounded):
    """Several grids over the same numbers, each displaced a little: a feature for every tile, 1 where the state is.

    The range of each number is cut into `bins`, and `tilings` grids are displaced against one another by odd multiples
    of a fraction of a bin, a different one for each number, so that states that are near share most of their tiles.
    `join` says which numbers make a grid: all of them, each pair, or each alone; by default all if there are at most
    two, else each pair. Integers have a tile for each value and are not displaced. Grids of all numbers are 8
    tilings of 8 bins, unless told otherwise; those of pairs or single numbers 4 of 6, since there are more of them.

    Every state has the same number of tiles, m, and the value of each is 1/√m, so that ‖ψ‖ = 1.

    >>> tiles = Tiles(low=(-1.2, -0.07), high=(0.6, 0.07))
    >>> tiles.size, tiles.encode(np.array([-0.5, 0.0])).indices.size
    (648, 8)
    """

    kind: ClassVar[str] = "tiles"

    tilings: int | None = None
    """How many grids there are of the same numbers; None: 8 if they are of all numbers, 4 of pairs and single ones."""
    bins: int | tuple[int, ...] | None = None
    """Into how many tiles the range of each number is cut; None: 8 if the grids are of all numbers, else 6, and more of
    a number of which random play sees little."""
    join: str = "automatic"
    whole: tuple[bool, ...] | None = None
    """Which numbers are whole; none by default."""

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.tilings is not None:
            integer("tilings", self.tilings, at_least=1)
        for count in self.bins if isinstance(self.bins, tuple) else (self.bins,):
            if count is not None:
                integer("bins", count, at_least=1)
        choice("join", self.join, JOINS)
        if self.whole is not None:
            if self.low is None or len(self.whole) != len(self.low):
                raise refuse("whole", self.whole, "left out, or as many as low and high")
            object.__setattr__(self, "whole", tuple(flag("whole", each) for each in self.whole))

    def fitted(self, seen: Seen) -> Self:
        """Return the same map with the ranges of the environment, if it has none of its own, and as many bins as fit.

        A space may be far wider than what ever happens. So that random play covers two tiles, the range of a number is
        cut into more than usual: up to 16 if the grids are of all numbers, else up to 8.
        """
        filled = super().fitted(seen)
        if self.low is not None:
            return filled
        if any(seen.ranges.whole):
            filled = replace(filled, whole=seen.ranges.whole)
        if self.bins is None:
            usual, most = usual_bins(self.join, len(seen.ranges.low))
            wanted = np.ceil(2.0 * filled.bounds[1] / seen.spans)
            filled = replace(filled, bins=tuple(np.clip(wanted, usual, most).astype(int).tolist()))
        return filled

    @property
    def size(self) -> int:
        """The number of tiles of all grids."""
        return self._grids.size

    @property
    def active(self) -> int:
        """m, the number of tiles that a state has."""
        return len(self._grids.offsets)

    @cached_property
    def _grids(self) -> _Grids:
        return _make_grids(self)

    def encode(self, observation: Any) -> SparseVector:
        """Return the tiles in which the observation is."""
        grids = self._grids
        if isinstance(observation, np.ndarray) and observation.ndim == 1:
            numbers = np.array(observation, dtype=np.float64)
        else:
            numbers = vector(observation)
        if numbers.size != grids.numbers.shape[1]:
            raise InvalidInputError(f"an observation must have {grids.numbers.shape[1]} numbers, got {numbers.size}")
        found = np.empty(len(grids.offsets), np.int64)
        wrong = find_tiles(numbers, grids.numbers, grids.places, grids.offsets, found)
        if wrong >= 0:
            raise InvalidInputError(f"an observation must be finite, got {numbers[wrong]} at index {wrong}")
        return SparseVector(found, grids.values)


class _Grids(NamedTuple):
    """All grids, as arrays."""

    numbers: Floats
    """Of each number the least value, the bins per unit, and the last tile; shape (3, d)."""
    places: Ints
    """Of each grid its numbers, the strides of their tiles, and its first feature; shape (m, 2 n + 1).

    A grid of fewer than n numbers has stride 0 for the rest."""
    offsets: Floats
    """By which share of a bin each grid is displaced along each of its numbers; shape (m, n)."""
    values: Floats
    size: int


def _make_grids(tiles: Tiles) -> _Grids:
    low, width = tiles.bounds
    groups = _groups(tiles.join, low.size)
    tilings = tiles.tilings or (8 if len(groups) == 1 else 4)
    bins = np.array(tiles.bins or usual_bins(tiles.join, low.size)[0], dtype=np.float64)
    if bins.ndim and bins.size != low.size:
        raise refuse("bins", tiles.bins, f"one number, or {low.size}, as many as an observation has")
    whole = np.array(tiles.whole or (False,) * low.size) & (width < MOST_VALUES)
    last = np.where(whole, np.round(width), bins)
    numbers = np.stack([low, np.where(whole, 1.0, bins / width), last])
    counts = (last + 1).astype(int).tolist()  # a displaced grid has one bin more
    longest = max(map(len, groups))
    places: list[list[int]] = []
    offsets: list[list[float]] = []
    first = 0
    for group in groups:
        strides = [math.prod(counts[i] for i in group[j + 1 :]) for j in range(len(group))]
        padding = longest - len(group)
        for tiling in range(1 if whole[list(group)].all() else tilings):
            places.append([*group, *[0] * padding, *strides, *[0] * padding, first])
            shares = [(tiling * (2 * j + 1) % tilings) / tilings for j in range(len(group))]
            moved = [0.0 if whole[i] else share for i, share in zip(group, shares, strict=True)]
            offsets.append([*moved, *[0.0] * padding])
            first += math.prod(counts[i] for i in group)
            if first > MOST_TILES:
                raise InvalidInputError(f"tiles must be at most {MOST_TILES}, got more; join fewer numbers in a grid")
    values = np.full(len(places), 1.0 / math.sqrt(len(places)))
    return _Grids(frozen(numbers), frozen(np.array(places)), frozen(np.array(offsets)), frozen(values), first)


def usual_bins(join: str, count: int) -> tuple[int, int]:
    """Return into how many bins a range is cut, unless told otherwise, for so many numbers, and at most."""
    return (8, 16) if len(_groups(join, count)) == 1 else (6, 8)


def _groups(join: str, count: int) -> list[tuple[int, ...]]:
    """Return which numbers make a grid."""
    if join == "single" or count == 1:
        return [(i,) for i in range(count)]
    if join == "all" or (join == "automatic" and count == 2):
        return [tuple(range(count))]
    return list(combinations(range(count), 2))


@entry_point
def find_tiles(observed: Floats, numbers: Floats, places: Ints, offsets: Floats, found: Ints) -> int:
    """Write the tile of each grid into `found`; return the index of a number that is not finite, else -1."""
    for i in range(observed.size):
        if not np.isfinite(observed[i]):
            return i
        # the position in bins; beyond the bounds it counts as the bound
        observed[i] = min(max((observed[i] - numbers[0, i]) * numbers[1, i], 0.0), numbers[2, i])
    joined = offsets.shape[1]
    for grid in range(offsets.shape[0]):
        tile = places[grid, 2 * joined]
        for j in range(joined):
            i = places[grid, j]
            step = min(np.floor(observed[i] + offsets[grid, j]), numbers[2, i])
            tile += np.int64(step) * places[grid, joined + j]
        found[grid] = tile
    return -1
