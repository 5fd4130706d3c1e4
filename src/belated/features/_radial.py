"""`RadialBasis`: Gaussian bumps on a grid."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar

import numpy as np

from belated._util.validate import integer, real
from belated.features._base import Bounded, Dense
from belated.sampled import SparseVector
from belated.types import Floats


@dataclass(frozen=True, kw_only=True)
class RadialBasis(Bounded):
    """Gaussian bumps exp(-‖x - c‖² / 2 w²) around the points c of a grid, divided by their sum.

    The grid has `centres` points along each number, including both ends of its range, so there are centresᵈ bumps;
    w is `width` times the distance between neighbouring points.

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
        return int(self.centres**self.numbers)

    @cached_property
    def _grid(self) -> tuple[Floats, Dense]:
        dense = Dense(self.size, self.kind)
        return np.indices((self.centres,) * self.numbers).reshape(self.numbers, -1).T / (self.centres - 1), dense

    def encode(self, observation: Any) -> SparseVector:
        points, dense = self._grid
        squares = ((points - self.unit(observation)) ** 2).sum(axis=1)
        spread = self.width / (self.centres - 1)
        # relative to the nearest one, so that not all of them can underflow
        bumps = np.exp(-(squares - squares.min()) / (2.0 * spread**2))
        return dense(bumps / bumps.sum())
