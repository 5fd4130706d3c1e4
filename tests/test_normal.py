from __future__ import annotations

import numpy as np
import pytest

from belated.compiled import kernel
from belated.normal import TAIL, standard_normal
from belated.types import Floats


@kernel
def fill(rng: np.random.Generator, out: Floats) -> None:
    for i in range(out.size):
        out[i] = standard_normal(rng)


@pytest.mark.parametrize("bits", [np.random.PCG64, np.random.MT19937, np.random.Philox, np.random.SFC64])
def test_the_numbers_are_those_of_numpy(bits: type[np.random.BitGenerator]) -> None:
    ours, theirs = np.random.Generator(bits(7)), np.random.Generator(bits(7))
    found = np.zeros(200_000)
    fill(ours, found)
    expected = theirs.standard_normal(found.size)
    assert np.abs(expected).max() > TAIL  # all three ways out of the ziggurat were taken
    assert np.array_equal(found, expected)
    assert ours.random() == theirs.random()  # and as many bits were used
