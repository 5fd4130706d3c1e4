"""Observations taken in together give the factor that they give one by one."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pytest

from belated._kernels import block_update as blocks
from belated._kernels import gaussian
from belated._kernels.block_update import BLOCK_FROM, WIDTH
from belated._kernels.jit import entry_point

add_visits, block_update = entry_point(blocks.add_visits), entry_point(blocks.block_update)
draw = entry_point(gaussian.draw)
draw_many = entry_point(gaussian.draw_many)
rank_one_update = entry_point(gaussian.rank_one_update)
solve = entry_point(gaussian.solve)
solve_two = entry_point(gaussian.solve_two)

Floats = npt.NDArray[np.float64]


def a_factor(d: int) -> Floats:
    half = np.random.default_rng(d).standard_normal((d, d + 3))
    return np.ascontiguousarray(np.linalg.cholesky(half @ half.T + np.eye(d)).T)


@pytest.mark.parametrize("d", [1, 5, WIDTH, WIDTH + 1, 3 * WIDTH + 7])
@pytest.mark.parametrize("count", [1, 2, 40])
def test_a_block_is_as_many_rank_one_updates(d: int, count: int) -> None:
    x = np.random.default_rng(count).standard_normal((d, count))
    x[: d // 2, 0] = 0.0
    block, one = a_factor(d), a_factor(d)
    block_update(block, x.copy())
    for column in x.T.copy():
        rank_one_update(one, column)
    np.testing.assert_allclose(block, one, rtol=1e-10, atol=1e-11)
    np.testing.assert_array_equal(np.tril(block, -1), 0.0)
    assert np.all(np.diag(block) > 0)


def test_columns_of_zeros_change_nothing() -> None:
    factor = a_factor(20)
    block_update(factor, np.zeros((20, 30)))
    np.testing.assert_array_equal(factor, a_factor(20))


def test_a_block_keeps_small_directions_that_a_new_factorisation_would_lose() -> None:
    """With n·φφᵀ of 1e18 beside a ridge of 1, the sum is not even positive definite in floats."""
    d = 4
    x = np.full((d, 30), 1e8)
    factor = np.eye(d)
    block_update(factor, x.copy())
    eigenvalues = np.linalg.svd(factor, compute_uv=False) ** 2
    assert eigenvalues[0] == pytest.approx(30 * d * 1e16, rel=1e-12)
    determinant = np.prod(np.diag(factor)) ** 2
    assert determinant == pytest.approx(1 + 30 * d * 1e16, rel=1e-6)  # det(I + XXᵀ) = 1 + 30·d·1e16


@pytest.mark.parametrize("distinct", [1, 3, BLOCK_FROM - 1, BLOCK_FROM, BLOCK_FROM + 9])
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_equal_visits_are_one_observation(distinct: int, dtype: npt.DTypeLike) -> None:
    rng = np.random.default_rng(distinct)
    rows = rng.standard_normal((distinct + 5, 11))
    pairs = np.concatenate([np.arange(distinct), rng.integers(distinct, size=50)])
    rng.shuffle(pairs)
    factor = a_factor(11).astype(dtype)
    wanted = factor.astype(np.float64).T @ factor.astype(np.float64) + rows[pairs].T @ rows[pairs] / 0.3**2
    add_visits(factor, rows, pairs.copy(), 0.3, np.empty(11))
    tolerance = 1e-10 if dtype == np.float64 else 1e-5
    found = factor.astype(np.float64)
    np.testing.assert_allclose(found.T @ found, wanted, rtol=tolerance, atol=tolerance * wanted.max())
    assert factor.dtype == dtype


@pytest.mark.parametrize("d", [1, 2, 3, 8, 31])
def test_two_right_hand_sides_at_once(d: int) -> None:
    factor, rng = a_factor(d), np.random.default_rng(d)
    v, w = rng.standard_normal(d), rng.standard_normal(d)
    one, other = v.copy(), w.copy()
    solve(factor, v)
    solve(factor, w)
    solve_two(factor, one, other)
    np.testing.assert_allclose(one, v, rtol=1e-10, atol=1e-12)
    np.testing.assert_allclose(other, w, rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize("count", [1, 2, 3, 4])
def test_many_draws_use_the_numbers_of_one_after_the_other(count: int) -> None:
    factor, half = a_factor(6), np.arange(6.0)
    mine, other = np.random.default_rng(0), np.random.default_rng(0)
    weights, wanted = np.empty((count, 6)), np.empty((count, 6))
    draw_many(factor, half, 0.7, mine, weights)
    for row in wanted:
        draw(factor, half, 0.7, other, row)
    np.testing.assert_allclose(weights, wanted, rtol=1e-11, atol=1e-13)
    assert mine.bit_generator.state == other.bit_generator.state
