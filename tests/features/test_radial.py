"""Bumps against their definition."""

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
from belated.features import RadialBasis


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
def test_bad_input_is_refused_in_words(call: Callable[[], Any], message: str) -> None:
    with pytest.raises(InvalidInputError, match=message):
        call()
