"""`RadialBasis`: bumps on a grid."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar

import numpy as np

from belated._util.validate import integer, real
from belated.features._base import Bounded, Dense
from belated.types import Floats, SparseVector


@dataclass(frozen=True, kw_only=True)
class RadialBasis(Bounded):
    """Gaussian bumps exp(-‖x - c‖² / 2 w²) around the points c of a grid, divided by their sum.

    The grid has `centres` points along each number, the ends of its range included; w is `width` times the distance
    between two of them. There are centresᵈ bumps.

    >>> int(RadialBasis(centres=3, low=(0,), high=(1,)).encode(0.5).values.argmax())
    1
    """

    kind: ClassVar[str] = "radial-basis"

    centres: int = 6
    width: float = 0.7

    def __post_init__(self) -> None:
        super().__post_init__()
        integer("centres", self.centres, at_least=2)
        object.__setattr__(self, "width", real("width", self.width, above=0.0))

    @property
    def size(self) -> int:
        """centresᵈ."""
        return int(self.centres**self.numbers)

    @cached_property
    def _grid(self) -> tuple[Floats, Dense]:
        dense = Dense(self.size, self.kind)
        return np.indices((self.centres,) * self.numbers).reshape(self.numbers, -1).T / (self.centres - 1), dense

    def encode(self, observation: Any) -> SparseVector:
        """Return all bumps."""
        points, dense = self._grid
        squares = ((points - self.unit(observation)) ** 2).sum(axis=1)
        spread = self.width / (self.centres - 1)
        # the nearest one is taken out of the exponent, so that not all of them can round to zero
        bumps = np.exp(-(squares - squares.min()) / (2.0 * spread**2))
        return dense(bumps / bumps.sum())
