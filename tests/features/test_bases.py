"""Smooth bases against their definitions, the kernel they approximate, and scikit-learn."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from feature_maps import HIGH, LOW, dense, observations, shares
from refusals import refusals
from sklearn.preprocessing import PolynomialFeatures

from belated.errors import InvalidInputError
from belated.features import Fourier, Polynomial, RadialBasis, RandomFourier


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
def test_bad_input_is_refused_in_words_of_fourier(call: Callable[[], Any], message: str) -> None:
    with pytest.raises(InvalidInputError, match=message):
        call()


def test_radial_basis_is_the_definition() -> None:
    features = RadialBasis(low=LOW, high=HIGH, centres=3, width=0.5)
    for row in observations(20):
        bumps = [
            math.exp(-sum((x - c / 2) ** 2 for x, c in zip(shares(row), centre, strict=True)) / (2 * 0.25**2))
            for centre in itertools.product(range(3), repeat=3)
        ]
        np.testing.assert_allclose(dense(features, row), np.array(bumps) / sum(bumps), atol=1e-12)


@refusals(
    (lambda: RadialBasis(centres=1), "centres must be an integer >= 2, got 1"),
)
def test_bad_input_is_refused_in_words_of_radial(call: Callable[[], Any], message: str) -> None:
    with pytest.raises(InvalidInputError, match=message):
        call()


def test_polynomial_is_that_of_scikit_learn() -> None:
    features = Polynomial(low=LOW, high=HIGH, degree=3)
    for row in observations(20):
        expected = PolynomialFeatures(3).fit_transform([[2 * x - 1 for x in shares(row)]])[0] / math.sqrt(20)
        np.testing.assert_allclose(dense(features, row), expected, atol=1e-12)


@refusals(
    (lambda: Polynomial(degree=1.5), "degree must be an integer >= 1, got 1.5"),  # type: ignore[arg-type]
)
def test_bad_input_is_refused_in_words_of_polynomial(call: Callable[[], Any], message: str) -> None:
    with pytest.raises(InvalidInputError, match=message):
        call()
