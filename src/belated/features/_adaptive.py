"""`Adaptive`: raw observations, and the rule by which an agent chooses its map from the data."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, ClassVar, Self

import numpy as np

from belated._util.validate import choice, refuse
from belated.features._base import Bounded, Features, Seen, checked_vector, frozen, stated_ranges
from belated.features._bases import Polynomial
from belated.features._tiles import Tiles
from belated.types import Floats, Ints, SparseVector

#: Maximum number of entries of an observation for tiles; with more, features are learned.
MOST_TILED = 4
#: Minimum number of distinct transitions per observation for one feature per observation.
REACHED = 1.25
#: Bins of the grids of pairs; more for a stated range, since only a part of it is visited.
PAIR_BINS = 4
#: Tiles cover the observed range plus this fraction of it on either side.
MARGIN = 0.01
#: Maximum number of entries of an observation, and of one whose pairs are tiled in advance.
MOST_NUMBERS, MOST_PAIRED = 1_024, 16

CHOICES = ("automatic", "learned")


@dataclass(frozen=True, kw_only=True)
class Adaptive(Features):
    """Passes raw observations to an agent, which chooses its features as it learns.

    `AutoPSVI` chooses the map from the data and scales it by the observed range, repeatedly while it plays, by the rule
    `suited`. The bounds of the observation space are not used. Agents with a fixed map use `first`.
    """

    kind: ClassVar[str] = "adaptive"

    maps: str = "automatic"
    """The maps to choose from: "automatic" for all, "learned" for a network in any case."""
    first: Features | None = None
    """The map of agents with a fixed one; None for tiles, or the raw numbers if there are more than 16."""

    def __post_init__(self) -> None:
        choice("maps", self.maps, CHOICES)
        if self.first is not None and not isinstance(self.first, Bounded):
            raise refuse("first", self.first, "a map of numbers with ranges, such as Tiles()")

    def fitted(self, seen: Seen) -> Self:
        count = stated_ranges(seen.space)[0].size
        if count > MOST_NUMBERS:
            raise refuse(
                "features",
                None,
                f"given for observations of more than {MOST_NUMBERS} numbers ({count} here): choose "
                "some of them, or use an encoder (belated.features.FromCallable)",
            )
        usual = Tiles() if count <= MOST_PAIRED else Polynomial(degree=1)
        return replace(self, first=(usual if self.first is None else self.begun).fitted(seen))

    @property
    def size(self) -> int:
        return self.begun.numbers

    @property
    def begun(self) -> Bounded:
        """`first`, fitted to an environment."""
        if not isinstance(self.first, Bounded):
            raise refuse("first", None, "given, or fitted to an environment")
        return self.first

    @cached_property
    def _indices(self) -> Ints:
        indices: Ints = frozen(np.arange(self.size))
        return indices

    def encode(self, observation: Any) -> SparseVector:
        return SparseVector(self._indices, checked_vector(observation, self.size) + 0.0)  # turns -0.0 into 0.0

    def to_dict(self) -> dict[str, Any]:
        return {**super().to_dict(), **({} if self.first is None else {"first": self.begun.to_dict()})}


def suited(observations: int, numbers: int, transitions: int, maps: str = "automatic") -> str:
    """Return the kind of map, given the numbers of distinct observations, of their entries and of transitions.

    "distinct" if observations are reached in more than one way, "tiles" if they have at most four entries, else
    "network". In a continuous environment an observation is never reached twice except by repeating the same history,
    so there is one transition for each; in a grid there are several.

    >>> suited(observations=36, numbers=147, transitions=80)
    'distinct'
    """
    if maps == "learned":
        return "network"
    if transitions >= REACHED * observations:
        return "distinct"
    return "tiles" if numbers <= MOST_TILED else "network"


def tiles_of(numbers: Floats) -> Tiles:
    """Return tiles for the ranges of `numbers` (n, d), slightly extended."""
    low, high = numbers.min(axis=0), numbers.max(axis=0)
    width = np.where(high > low, high - low, 1.0)
    ends = (tuple((low - MARGIN * width).tolist()), tuple((high + MARGIN * width).tolist()))
    return Tiles(low=ends[0], high=ends[1], bins=PAIR_BINS if numbers.shape[1] > 2 else None)
