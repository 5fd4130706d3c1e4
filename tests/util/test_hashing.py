"""The hash of terms: the same in Python and in kernels, and of products whichever way they are made."""

from __future__ import annotations

import numpy as np

from belated._kernels.sparse_ridge import mixed as mixed_by_kernel
from belated._util.hashing import mixed, product_hash, term_hash


def test_python_and_kernels_mix_alike() -> None:
    with np.errstate(over="ignore"):  # integers of 64 bits wrap around
        for number in (0, 1, 2**63, 2**64 - 1, term_hash("country=DE")):
            assert mixed(number) == int(mixed_by_kernel(np.uint64(number)))


def test_a_product_has_a_hash_of_its_own() -> None:
    one, two = term_hash("country=DE"), term_hash("genre=jazz")
    assert len({one, two, product_hash(one, two), product_hash(two, one)}) == 4
    assert product_hash(one, two) == mixed(one ^ mixed(two))
