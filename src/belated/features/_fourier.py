"""`Fourier` and `RandomFourier`: cosines of the numbers in an observation."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar

import numpy as np

from belated._kernels.streams import stream
from belated._util.validate import integer, real
from belated.features._base import Bounded, Dense
from belated.sampled import SparseVector
from belated.types import Floats


@dataclass(frozen=True, kw_only=True)
class Fourier(Bounded):
    """The Fourier basis: cos(π c·x) / √k for every c in {0, …, order}ᵈ, with x scaled to [0, 1]ᵈ.

    Konidaris, Osentoski and Thomas (2011). There are k = (order + 1)ᵈ features: for many numbers use `RandomFourier`.

    >>> Fourier(order=1, low=(0, 0), high=(1, 1)).encode((0.0, 1.0)).values.tolist()
    [0.5, -0.5, 0.5, -0.5]
    """

    kind: ClassVar[str] = "fourier"

    order: int = 3

    def __post_init__(self) -> None:
        super().__post_init__()
        integer("order", self.order, at_least=1)

    @property
    def size(self) -> int:
        return int((self.order + 1) ** self.numbers)

    @cached_property
    def _basis(self) -> tuple[Floats, Dense]:
        dense = Dense(self.size, self.kind)
        frequencies = np.indices((self.order + 1,) * self.numbers).reshape(self.numbers, -1).T
        return math.pi * frequencies.astype(np.float64), dense

    def encode(self, observation: Any) -> SparseVector:
        frequencies, dense = self._basis
        return dense(np.cos(frequencies @ self.unit(observation)) / math.sqrt(self.size))


@dataclass(frozen=True, kw_only=True)
class RandomFourier(Bounded):
    """Random Fourier features: √(2/k) cos(w·x + b), whose products approximate a Gaussian kernel of width `length`.

    Rahimi and Recht (2007). w is normal with standard deviation 1/length and b uniform in [0, 2π], both drawn from
    `seed`; x is scaled to [0, 1]ᵈ.

    >>> RandomFourier(count=300, low=(0, 0), high=(1, 1)).size
    300
    """

    kind: ClassVar[str] = "random-fourier"

    count: int = 500
    length: float = 0.3
    seed: int = 0

    def __post_init__(self) -> None:
        super().__post_init__()
        integer("count", self.count, at_least=1)
        object.__setattr__(self, "length", real("length", self.length, above=0.0))
        integer("seed", self.seed, at_least=0)

    @property
    def size(self) -> int:
        return self.count

    @cached_property
    def _basis(self) -> tuple[Floats, Floats, Dense]:
        dense = Dense(self.count, self.kind)
        rng = stream(self.seed, "random Fourier features")
        frequencies = rng.standard_normal((self.count, self.numbers)) / self.length
        return frequencies, rng.uniform(0.0, 2.0 * math.pi, self.count), dense

    def encode(self, observation: Any) -> SparseVector:
        frequencies, phases, dense = self._basis
        return dense(math.sqrt(2.0 / self.count) * np.cos(frequencies @ self.unit(observation) + phases))
