"""Products with the features alone draw from the posterior that a factor of Ω draws from."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pytest
from moments import assert_distribution

from belated._kernels import conjugate_gradient
from belated._kernels.jit import entry_point
from belated.errors import InvalidInputError

perturb = entry_point(conjugate_gradient.perturb)
product = entry_point(conjugate_gradient.product)
solve_by_products = entry_point(conjugate_gradient.solve_by_products)

Floats = npt.NDArray[np.float64]
VISITED = np.array([0, 2, 3], np.int64)
SHARES = np.array([4.0, 0.25, 9.0])
RIDGE = 0.7


def table(d: int) -> Floats:
    rows: Floats = np.random.default_rng(d).standard_normal((5, d))
    return rows


def precision(rows: Floats) -> Floats:
    matrix: Floats = RIDGE * np.eye(rows.shape[1])
    for j, share in zip(VISITED, SHARES, strict=True):
        matrix += share * np.outer(rows[j], rows[j])
    return matrix


def solved(rows: Floats, b: Floats, tolerance: float = 1e-12) -> tuple[Floats, int]:
    x, direction, image = np.empty_like(b), np.empty_like(b), np.empty_like(b)
    steps = solve_by_products(rows, VISITED, SHARES, RIDGE, tolerance, b.copy(), x, direction, image)
    return x, steps


@pytest.mark.parametrize("d", [1, 2, 4, 30])
def test_the_product_and_the_solution(d: int) -> None:
    rows, v = table(d), np.random.default_rng(0).standard_normal(d)
    image = np.empty(d)
    product(rows, VISITED, SHARES, RIDGE, v, image)
    np.testing.assert_allclose(image, precision(rows) @ v, rtol=1e-12)
    x, steps = solved(rows, v)
    np.testing.assert_allclose(x, np.linalg.solve(precision(rows), v), rtol=1e-9, atol=1e-10)
    assert steps <= min(d, VISITED.size + 1) + 1  # λI plus rank three has at most four eigenvalues


def test_before_any_visit_one_step_is_enough() -> None:
    x, b = np.empty(3), np.array([1.0, -2.0, 3.0])
    none = np.zeros(0, np.int64)
    assert solve_by_products(table(3), none, np.zeros(0), RIDGE, 1e-12, b, x, np.empty(3), np.empty(3)) == 1
    np.testing.assert_allclose(x, np.array([1.0, -2.0, 3.0]) / RIDGE, rtol=1e-14)


def test_nothing_to_solve_is_zero() -> None:
    x, steps = solved(table(3), np.zeros(3))
    assert steps == 0
    np.testing.assert_array_equal(x, np.zeros(3))


@pytest.mark.parametrize("tolerance", [1e-2, 1e-5])
def test_the_residual_meets_the_tolerance(tolerance: float) -> None:
    rng = np.random.default_rng(3)
    rows = rng.standard_normal((200, 40)) * np.exp(rng.standard_normal(40))
    visited, shares = np.arange(200), rng.uniform(1, 50, 200)
    b, x = rng.standard_normal(40), np.empty(40)
    solve_by_products(rows, visited, shares, RIDGE, tolerance, b.copy(), x, np.empty(40), np.empty(40))
    matrix = RIDGE * np.eye(40) + (rows.T * shares) @ rows
    left = np.linalg.norm(b - matrix @ x) / np.linalg.norm(b)
    assert tolerance / 1e3 < left <= tolerance


def test_the_noise_is_linear_in_normals_and_its_covariance_is_that_of_the_right_hand_side() -> None:
    d, scale = 4, 1.5
    rows = table(d)
    # the map from the normals (d of the prior, then one a visited row) to the noise, column by column
    columns = np.hstack([np.sqrt(RIDGE) * np.eye(d), rows[VISITED].T * np.sqrt(SHARES)])
    np.testing.assert_allclose(columns @ columns.T, precision(rows), rtol=1e-12)
    for seed in range(3):
        b, rng = np.zeros(d), np.random.default_rng(seed)
        perturb(rows, VISITED, SHARES, RIDGE, scale, rng, b)
        other = np.random.default_rng(seed)
        np.testing.assert_allclose(b, scale * columns @ other.standard_normal(d + 3), rtol=1e-12)
        assert rng.bit_generator.state == other.bit_generator.state


def test_draws_have_the_posterior_distribution() -> None:
    d, scale = 3, 2.0
    rows, moment, rng = table(d), np.array([1.0, -0.5, 2.0]), np.random.default_rng(7)
    draws = np.empty((20_000, d))
    b, direction, image = np.empty(d), np.empty(d), np.empty(d)
    for x in draws:
        b[:] = moment
        perturb(rows, VISITED, SHARES, RIDGE, scale, rng, b)
        solve_by_products(rows, VISITED, SHARES, RIDGE, 1e-10, b, x, direction, image)
    inverse = np.linalg.inv(precision(rows))
    assert_distribution(draws, inverse @ moment, scale**2 * inverse)


def test_a_tolerance_out_of_reach_is_refused() -> None:
    d = 30
    rows = 1.0 / (1.0 + np.add.outer(np.arange(d), np.arange(d)))  # Hilbert's matrix
    b, (x, direction, image) = np.ones(d), np.empty((3, d))
    with pytest.raises(InvalidInputError, match=r"^tolerance is too small"):
        solve_by_products(rows, np.arange(d), np.full(d, 1e12), 1e-8, 1e-15, b, x, direction, image)


@pytest.mark.parametrize("large", [1e200, np.inf, np.nan])
def test_what_is_too_large_for_floats_is_no_number(large: float) -> None:
    x, steps = solved(table(2), np.array([large, 1.0]))
    assert np.isnan(x).all()
    assert steps == 0
