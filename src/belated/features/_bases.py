"""Smooth bases of the numbers in an observation: `Fourier`, `RandomFourier`, `Polynomial` and `RadialBasis`."""

from __future__ import annotations

import math
from abc import abstractmethod
from dataclasses import dataclass
from functools import cached_property
from itertools import chain, combinations_with_replacement
from typing import Any, ClassVar

import numpy as np

from belated._kernels.streams import stream
from belated._util.validate import integer, real
from belated.features._base import Bounded, Dense
from belated.types import Floats, Ints, SparseVector


class _Basis(Bounded):
    """Features that are all nonzero, computed from the scaled numbers of an observation."""

    @abstractmethod
    def _values(self, x: Floats) -> Floats:
        """Return the features of `x` in [0, 1]ᵈ."""

    @cached_property
    def _dense(self) -> Dense:
        return Dense(self.size, self.kind)

    def encode(self, observation: Any) -> SparseVector:
        dense = self._dense  # rejects too many features before they are computed
        return dense(self._values(self.unit(observation)))


@dataclass(frozen=True, kw_only=True)
class Fourier(_Basis):
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
    def _frequencies(self) -> Floats:
        grid = np.indices((self.order + 1,) * self.numbers).reshape(self.numbers, -1).T
        return math.pi * grid.astype(np.float64)

    def _values(self, x: Floats) -> Floats:
        cosines: Floats = np.cos(self._frequencies @ x)
        return cosines / math.sqrt(self.size)


@dataclass(frozen=True, kw_only=True)
class RandomFourier(_Basis):
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
    def _drawn(self) -> tuple[Floats, Floats]:
        rng = stream(self.seed, "random Fourier features")
        frequencies = rng.standard_normal((self.count, self.numbers)) / self.length
        return frequencies, rng.uniform(0.0, 2.0 * math.pi, self.count)

    def _values(self, x: Floats) -> Floats:
        frequencies, phases = self._drawn
        cosines: Floats = np.cos(frequencies @ x + phases)
        return math.sqrt(2.0 / self.count) * cosines


@dataclass(frozen=True, kw_only=True)
class Polynomial(_Basis):
    """All monomials of total degree at most `degree`, the constant included, divided by √k.

    The numbers are first scaled from their ranges to [-1, 1].

    >>> Polynomial(degree=2, low=(-1, -1), high=(1, 1)).size
    6
    """

    kind: ClassVar[str] = "polynomial"

    degree: int = 2

    def __post_init__(self) -> None:
        super().__post_init__()
        integer("degree", self.degree, at_least=1)

    @property
    def size(self) -> int:
        return math.comb(self.numbers + self.degree, self.degree)

    @cached_property
    def _exponents(self) -> Ints:
        rows = np.zeros((self.size, self.numbers), np.int64)
        every = range(self.numbers)
        products = chain.from_iterable(combinations_with_replacement(every, total) for total in range(self.degree + 1))
        for row, factors in zip(rows, products, strict=True):
            np.add.at(row, list(factors), 1)
        return rows

    def _values(self, x: Floats) -> Floats:
        monomials: Floats = ((2.0 * x - 1.0) ** self._exponents).prod(axis=1)
        return monomials / math.sqrt(self.size)


@dataclass(frozen=True, kw_only=True)
class RadialBasis(_Basis):
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
    def _points(self) -> Floats:
        return np.indices((self.centres,) * self.numbers).reshape(self.numbers, -1).T / (self.centres - 1)

    def _values(self, x: Floats) -> Floats:
        squares = ((self._points - x) ** 2).sum(axis=1)
        spread = self.width / (self.centres - 1)
        # relative to the nearest one, so that not all of them can underflow
        bumps = np.exp(-(squares - squares.min()) / (2.0 * spread**2))
        shares: Floats = bumps / bumps.sum()
        return shares
