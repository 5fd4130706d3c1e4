"""`Tiles`: tile coding, the default map for real-valued observations."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import combinations
from typing import Any, ClassVar, NamedTuple, Self

import numpy as np

from belated._kernels.jit import entry_point, kernel
from belated._util.validate import choice, flag, integer, refuse
from belated.errors import InvalidInputError
from belated.features._base import Bounded, Seen, frozen, vector
from belated.types import Floats, Ints, SparseRows, SparseVector

JOINS = ("automatic", "all", "pairs", "single")
MOST_TILES = 10_000_000
#: Integers with fewer values than this have a tile for each value; others are binned like real numbers.
MOST_VALUES = 64


@dataclass(frozen=True, kw_only=True)
class Tiles(Bounded):
    """Tile coding: several shifted grids over the same numbers, with one feature per tile.

    The range of each number is divided into `bins`, and `tilings` grids are offset by odd multiples of a fraction of a
    bin, different for each number, so that nearby states share most of their tiles. `join` says which numbers form a
    grid: "all" of them, "pairs" or each "single" one; by default all if there are at most two, else pairs. Integers
    have a tile for each value and are not shifted. By default grids of all numbers have 8 tilings of 8 bins; those of
    pairs or single numbers, of which there are more, 4 tilings of 6 bins.

    Every state is in the same number of tiles, m, each of value 1/√m, so that ‖ψ‖ = 1.

    >>> tiles = Tiles(low=(-1.2, -0.07), high=(0.6, 0.07))
    >>> tiles.size, tiles.encode(np.array([-0.5, 0.0])).indices.size
    (648, 8)
    """

    kind: ClassVar[str] = "tiles"

    tilings: int | None = None
    """Number of grids over the same numbers; None for 8 with grids of all numbers, else 4."""
    bins: int | tuple[int, ...] | None = None
    """Tiles per range; None for 8 with grids of all numbers, else 6, and more if random play covers little of it."""
    join: str = "automatic"
    integers: tuple[bool, ...] | None = None
    """Which numbers are integers; none by default."""

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.tilings is not None:
            integer("tilings", self.tilings, at_least=1)
        for count in self.bins if isinstance(self.bins, tuple) else (self.bins,):
            if count is not None:
                integer("bins", count, at_least=1)
        choice("join", self.join, JOINS)
        if self.integers is not None:
            if self.low is None or len(self.integers) != len(self.low):
                raise refuse("integers", self.integers, "left out, or as long as low and high")
            object.__setattr__(self, "integers", tuple(flag("integers", each) for each in self.integers))

    def fitted(self, seen: Seen) -> Self:
        """Return the map with the environment's ranges and suitable bins, unless they were given.

        A space may be far wider than what ever occurs. So that random play covers two tiles, the range of a number may
        get more bins than the default: up to 16 for grids of all numbers, else up to 8.
        """
        filled = super().fitted(seen)
        if self.low is not None:
            return filled
        if any(seen.ranges.integers):
            filled = replace(filled, integers=seen.ranges.integers)
        if self.bins is None:
            usual, most = usual_bins(self.join, len(seen.ranges.low))
            wanted = np.ceil(2.0 * filled.bounds[1] / seen.spans)
            filled = replace(filled, bins=tuple(np.clip(wanted, usual, most).astype(int).tolist()))
        return filled

    @property
    def size(self) -> int:
        return self._grids.size

    @property
    def active(self) -> int:
        """m, the number of active tiles of a state."""
        return len(self._grids.offsets)

    @cached_property
    def _grids(self) -> _Grids:
        return _make_grids(self)

    def encode(self, observation: Any) -> SparseVector:
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

    def encode_rows(self, numbers: Floats) -> SparseRows:
        grids = self._grids
        m = len(grids.offsets)
        found = np.empty((len(numbers), m), np.int64)
        find_all_tiles(np.array(numbers), grids.numbers, grids.places, grids.offsets, found)
        return SparseRows(np.arange(len(numbers) + 1) * m, found.ravel(), np.tile(grids.values, len(numbers)))


class _Grids(NamedTuple):
    numbers: Floats
    """The minimum of each number, its bins per unit, and its last tile; shape (3, d)."""
    places: Ints
    """The numbers of each grid, the strides of their tiles, and its first feature; shape (m, 2 n + 1).

    A grid of fewer than n numbers is padded with stride 0."""
    offsets: Floats
    """The shift of each grid along each of its numbers, in bins; shape (m, n)."""
    values: Floats
    size: int


def _make_grids(tiles: Tiles) -> _Grids:
    low, width = tiles.bounds
    groups = _groups(tiles.join, low.size)
    tilings = tiles.tilings or (8 if len(groups) == 1 else 4)
    bins = np.array(tiles.bins or usual_bins(tiles.join, low.size)[0], dtype=np.float64)
    if bins.ndim and bins.size != low.size:
        raise refuse("bins", tiles.bins, f"one number, or {low.size}, as many as an observation has")
    integers = np.array(tiles.integers or (False,) * low.size) & (width < MOST_VALUES)
    last = np.where(integers, np.round(width), bins)
    numbers = np.stack([low, np.where(integers, 1.0, bins / width), last])
    counts = (last + 1).astype(int).tolist()  # an offset grid has one more bin
    longest = max(map(len, groups))
    places: list[list[int]] = []
    offsets: list[list[float]] = []
    first = 0
    for group in groups:
        strides = [math.prod(counts[i] for i in group[j + 1 :]) for j in range(len(group))]
        padding = longest - len(group)
        for tiling in range(1 if integers[list(group)].all() else tilings):
            places.append([*group, *[0] * padding, *strides, *[0] * padding, first])
            shares = [(tiling * (2 * j + 1) % tilings) / tilings for j in range(len(group))]
            moved = [0.0 if integers[i] else share for i, share in zip(group, shares, strict=True)]
            offsets.append([*moved, *[0.0] * padding])
            first += math.prod(counts[i] for i in group)
            if first > MOST_TILES:
                raise InvalidInputError(f"tiles must be at most {MOST_TILES}, got more; join fewer numbers in a grid")
    values = np.full(len(places), 1.0 / math.sqrt(len(places)))
    return _Grids(frozen(numbers), frozen(np.array(places)), frozen(np.array(offsets)), frozen(values), first)


def usual_bins(join: str, count: int) -> tuple[int, int]:
    """Return the default and the maximum number of bins per range."""
    return (8, 16) if len(_groups(join, count)) == 1 else (6, 8)


def _groups(join: str, count: int) -> list[tuple[int, ...]]:
    """Return which numbers form each grid."""
    if join == "single" or count == 1:
        return [(i,) for i in range(count)]
    if join == "all" or (join == "automatic" and count == 2):
        return [tuple(range(count))]
    return list(combinations(range(count), 2))


@kernel
def tiles_of_one(observed: Floats, numbers: Floats, places: Ints, offsets: Floats, found: Ints) -> int:
    """Write the tile of each grid into `found`; return the index of a number that is not finite, else -1."""
    for i in range(observed.size):
        if not np.isfinite(observed[i]):
            return i
        # the position in bins, clipped to the range
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


find_tiles = entry_point(tiles_of_one)


@entry_point
def find_all_tiles(observed: Floats, numbers: Floats, places: Ints, offsets: Floats, found: Ints) -> None:
    """Write the tile of each row of `observed` and each grid into `found`."""
    for row in range(observed.shape[0]):
        tiles_of_one(observed[row], numbers, places, offsets, found[row])
