"""`Polynomial`: all products of the numbers in an observation up to a degree."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from itertools import chain, combinations_with_replacement
from typing import Any, ClassVar

import numpy as np

from belated._util.validate import integer
from belated.features._base import Bounded, Dense
from belated.sampled import SparseVector
from belated.types import Ints


@dataclass(frozen=True, kw_only=True)
class Polynomial(Bounded):
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
    def _exponents(self) -> tuple[Ints, Dense]:
        dense = Dense(self.size, self.kind)
        rows = np.zeros((self.size, self.numbers), np.int64)
        every = range(self.numbers)
        products = chain.from_iterable(combinations_with_replacement(every, total) for total in range(self.degree + 1))
        for row, factors in zip(rows, products, strict=True):
            np.add.at(row, list(factors), 1)
        return rows, dense

    def encode(self, observation: Any) -> SparseVector:
        exponents, dense = self._exponents
        centred = 2.0 * self.unit(observation) - 1.0
        return dense((centred**exponents).prod(axis=1) / math.sqrt(self.size))
