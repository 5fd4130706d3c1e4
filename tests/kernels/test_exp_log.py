"""Exponential and logarithm against those of the C library, whose error is below one unit in the last place."""

from __future__ import annotations

import math

import numpy as np
import pytest

from belated._kernels.exp_log import exp, log, log_rest, strict_exp, strict_log, strict_log_rest


def test_the_exponential_is_within_two_units_in_the_last_place() -> None:
    rng = np.random.default_rng(0)
    for x in [*rng.uniform(-1, 1, 3000), *rng.uniform(-700, 700, 3000), 0.0, 1e-300, -708.3, 709.7]:
        assert abs(strict_exp(x) - math.exp(x)) <= 2 * math.ulp(math.exp(x))


def test_the_logarithm_is_within_two_units_in_the_last_place() -> None:
    rng = np.random.default_rng(1)
    for x in [*rng.uniform(0.5, 2, 3000), *10 ** rng.uniform(-300, 300, 3000), 1.0, 5e-324, 1.7e308]:
        assert abs(strict_log(x) - math.log(x)) <= 2 * math.ulp(math.log(x))


def test_the_logarithm_of_what_a_uniform_number_leaves() -> None:
    for u in [*np.random.default_rng(2).random(3000), 0.0, 2.0**-53, 1 - 2.0**-53]:
        assert abs(strict_log_rest(u) - math.log1p(-u)) <= 2 * math.ulp(math.log1p(-u))
        assert log_rest(u) == pytest.approx(math.log1p(-u), rel=1e-15)


def test_the_ends_of_the_range() -> None:
    assert [strict_exp(x) for x in (800.0, math.inf, -800.0, -math.inf)] == [math.inf, math.inf, 0.0, 0.0]
    assert strict_exp(-745.0) == math.exp(-745.0)
    assert [strict_log(x) for x in (0.0, math.inf)] == [-math.inf, math.inf]
    assert all(math.isnan(value) for value in (strict_exp(math.nan), strict_log(math.nan), strict_log(-1.0)))


def test_unless_asked_they_are_those_of_the_library() -> None:
    assert (exp, log) == (np.exp, np.log)
