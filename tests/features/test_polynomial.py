"""Monomials against those of scikit-learn."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from feature_maps import HIGH, LOW, dense, observations, shares
from refusals import refusals
from sklearn.preprocessing import PolynomialFeatures

from belated.errors import InvalidInputError
from belated.features import Polynomial


def test_polynomial_is_that_of_scikit_learn() -> None:
    features = Polynomial(low=LOW, high=HIGH, degree=3)
    for row in observations(20):
        expected = PolynomialFeatures(3).fit_transform([[2 * x - 1 for x in shares(row)]])[0] / math.sqrt(20)
        np.testing.assert_allclose(dense(features, row), expected, atol=1e-12)


@refusals(
    (lambda: Polynomial(degree=1.5), "degree must be an integer >= 1, got 1.5"),  # type: ignore[arg-type]
)
def test_bad_input_is_refused_in_words(call: Callable[[], Any], message: str) -> None:
    with pytest.raises(InvalidInputError, match=message):
        call()
