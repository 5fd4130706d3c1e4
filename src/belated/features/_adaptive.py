"""`Adaptive`: observations as they are, and the rule by which an agent chooses its map from what has arrived."""

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

#: Observations of at most so many numbers are cut into tiles; of more, features are learned.
MOST_TILED = 4
#: A feature for each observation where there are so many distinct transitions for each of them.
REACHED = 1.25
#: Bins of the grids of pairs; a stated range has more, since what is seen is only a part of it.
PAIR_BINS = 4
#: Tiles cover the range that was seen and so much of it on either side.
MARGIN = 0.01
#: The maximum number of numbers in an observation, and in one whose pairs are cut into tiles beforehand.
MOST_NUMBERS, MOST_PAIRED = 1_024, 16

CHOICES = ("automatic", "learned")


@dataclass(frozen=True, kw_only=True)
class Adaptive(Features):
    """Hands an agent the numbers of an observation as they are: it makes features of them as it learns.

    `AutoPSVI` chooses the map from what has arrived and scales it by what was seen, again and again while it plays:
    `suited` is the rule. Bounds that the space states play no part in it. Agents that keep one map have `first`.
    """

    kind: ClassVar[str] = "adaptive"

    maps: str = "automatic"
    """Which maps are chosen from: "automatic", all; "learned", a network whatever the observations are."""
    first: Features | None = None
    """The map of agents that keep one; None: tiles, or the numbers themselves if they are more than 16."""

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
        """`first`, once it is fitted to an environment."""
        if not isinstance(self.first, Bounded):
            raise refuse("first", None, "given, or fitted to an environment")
        return self.first

    @cached_property
    def _indices(self) -> Ints:
        indices: Ints = frozen(np.arange(self.size))
        return indices

    def encode(self, observation: Any) -> SparseVector:
        return SparseVector(self._indices, checked_vector(observation, self.size) + 0.0)  # of two zeros one

    def to_dict(self) -> dict[str, Any]:
        return {**super().to_dict(), **({} if self.first is None else {"first": self.begun.to_dict()})}


def suited(observations: int, numbers: int, transitions: int, maps: str = "automatic") -> str:
    """Return the kind of map for so many distinct observations of so many `numbers`, and distinct transitions.

    "distinct" where observations are reached in more than one way, "tiles" where they have at most four numbers, else
    "network". In a continuous world no observation is reached twice but by repeating all that led to it, so that there
    is one transition for each; in a grid there are several.

    >>> suited(observations=36, numbers=147, transitions=80)
    'distinct'
    """
    if maps == "learned":
        return "network"
    if transitions >= REACHED * observations:
        return "distinct"
    return "tiles" if numbers <= MOST_TILED else "network"


def tiles_of(numbers: Floats) -> Tiles:
    """Return tiles for the ranges of `numbers` (n, d), and a little more."""
    low, high = numbers.min(axis=0), numbers.max(axis=0)
    width = np.where(high > low, high - low, 1.0)
    ends = (tuple((low - MARGIN * width).tolist()), tuple((high + MARGIN * width).tolist()))
    return Tiles(low=ends[0], high=ends[1], bins=PAIR_BINS if numbers.shape[1] > 2 else None)
