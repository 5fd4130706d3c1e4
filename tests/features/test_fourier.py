"""Cosines against their definition, and random ones against the kernel that they approximate."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from feature_maps import HIGH, LOW, dense, observations, shares
from refusals import refusals

from belated.errors import InvalidInputError
from belated.features import Fourier, RandomFourier


def test_fourier_is_the_definition() -> None:
    features = Fourier(low=LOW, high=HIGH, order=2)
    for row in observations(20):
        expected = [
            math.cos(math.pi * sum(c * x for c, x in zip(frequency, shares(row), strict=True))) / math.sqrt(27)
            for frequency in itertools.product(range(3), repeat=3)
        ]
        np.testing.assert_allclose(dense(features, row), expected, atol=1e-12)


def test_random_fourier_approximates_a_gaussian_kernel() -> None:
    features = RandomFourier(low=(0, 0), high=(1, 1), count=10_000, length=0.4, seed=1)
    rng = np.random.default_rng(0)
    for a, b in rng.random((10, 2, 2)):
        expected = math.exp(-float(((a - b) ** 2).sum()) / (2 * 0.4**2))
        assert dense(features, a) @ dense(features, b) == pytest.approx(expected, abs=0.05)
    assert not np.array_equal(dense(features, a), dense(RandomFourier(low=(0, 0), high=(1, 1), count=10_000), a))


@refusals(
    (lambda: Fourier(low=LOW, high=HIGH).encode([1, 2, np.inf]), "an observation must be finite, got inf at index 2"),
    (lambda: Fourier(low=LOW, high=HIGH).encode(["a", 2, 3]), "an observation must be numbers, or arrays, tuples or"),
    (lambda: Fourier(low=(0,) * 9, high=(1,) * 9).encode([0] * 9), "'fourier' must have at most 10000 features, got"),
    (lambda: Fourier(order=0), "order must be an integer >= 1, got 0"),
    (lambda: RandomFourier(length=0.0), "length must be a finite number > 0, got 0.0"),
)
def test_bad_input_is_refused_in_words(call: Callable[[], Any], message: str) -> None:
    with pytest.raises(InvalidInputError, match=message):
        call()
