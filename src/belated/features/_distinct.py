"""`Distinct`: one feature for every distinct observation, where observations repeat."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar

import numpy as np

from belated.features._base import Features, frozen, vector
from belated.types import Floats, SparseVector

#: Bits of the hash that numbers the features: two of 100 000 observations collide with probability 10⁻⁶.
BITS = 53


@dataclass(frozen=True, kw_only=True)
class Distinct(Features):
    """A feature for each distinct observation: a table whose states are not known in advance.

    >>> one, other = Distinct().encode([3.0, 1.0]), Distinct().encode([3.0, 2.0])
    >>> one.indices.size, bool(one.indices[0] == other.indices[0])
    (1, False)
    """

    kind: ClassVar[str] = "distinct"

    @property
    def size(self) -> int:
        return 1 << BITS

    @cached_property
    def _one(self) -> Floats:
        one: Floats = frozen(np.ones(1))
        return one

    def encode(self, observation: Any) -> SparseVector:
        numbers = vector(observation) + 0.0  # turns -0.0 into 0.0
        digest = hashlib.blake2b(numbers.tobytes(), digest_size=8).digest()
        return SparseVector(np.array([int.from_bytes(digest, "little") >> (64 - BITS)]), self._one)
