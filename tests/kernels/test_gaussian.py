"""The incremental Gaussian posterior is the textbook one, in any order, and stays so after many arrivals."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pytest
from moments import assert_distribution

from belated._kernels import gaussian
from belated._kernels.jit import entry_point

Floats = npt.NDArray[np.float64]

dot = entry_point(gaussian.dot)
draw = entry_point(gaussian.draw)
draw_many = entry_point(gaussian.draw_many)
rank_one_update = entry_point(gaussian.rank_one_update)
solve = entry_point(gaussian.solve)
solve_transposed = entry_point(gaussian.solve_transposed)


def positive_definite(d: int, seed: int, spread: float = 1.0) -> Floats:
    rng = np.random.default_rng(seed)
    basis, _ = np.linalg.qr(rng.standard_normal((d, d)))
    matrix: Floats = (basis * np.exp(spread * rng.standard_normal(d))) @ basis.T
    return (matrix + matrix.T) / 2


@pytest.mark.parametrize("d", [1, 2, 6, 33])
def test_rank_one_update_against_a_fresh_factorisation(d: int) -> None:
    matrix, x = positive_definite(d, seed=d), np.random.default_rng(d).standard_normal(d)
    x[:: max(1, d - 1)] *= -1.0
    factor = np.ascontiguousarray(np.linalg.cholesky(matrix).T)
    rank_one_update(factor, x.copy())
    np.testing.assert_allclose(factor, np.linalg.cholesky(matrix + np.outer(x, x)).T, rtol=1e-12, atol=1e-13)


def test_rank_one_update_with_zeros_and_with_a_one_hot() -> None:
    matrix = positive_definite(5, seed=9)
    for x in (np.zeros(5), np.eye(5)[0], np.eye(5)[3], np.array([0.0, 1.0, 0.0, -2.0, 0.0])):
        factor = np.ascontiguousarray(np.linalg.cholesky(matrix).T)
        rank_one_update(factor, x.copy())
        np.testing.assert_allclose(factor, np.linalg.cholesky(matrix + np.outer(x, x)).T, rtol=1e-13, atol=1e-13)


@pytest.mark.parametrize("d", [1, 4, 40])
def test_triangular_solves(d: int) -> None:
    factor = np.ascontiguousarray(np.linalg.cholesky(positive_definite(d, seed=d)).T)
    b = np.random.default_rng(d).standard_normal(d)
    up, down = b.copy(), b.copy()
    solve(factor, up)
    solve_transposed(factor, down)
    np.testing.assert_allclose(up, np.linalg.solve(factor, b), rtol=1e-9, atol=1e-10)
    np.testing.assert_allclose(down, np.linalg.solve(factor.T, b), rtol=1e-9, atol=1e-10)
    assert dot(b, factor[0]) == pytest.approx(float(b @ factor[0]), rel=1e-12)


def test_the_draw_kernel_uses_d_normals_in_order() -> None:
    matrix = positive_definite(4, seed=2)
    lower, half = np.linalg.cholesky(matrix), np.array([1.0, -2.0, 0.5, 0.0])
    weights, rng, other = np.empty(4), np.random.default_rng(5), np.random.default_rng(5)
    draw(np.ascontiguousarray(lower.T), half, 0.3, rng, weights)
    expected = np.linalg.solve(lower.T, half + 0.3 * other.standard_normal(4))
    np.testing.assert_allclose(weights, expected, rtol=1e-12)
    assert rng.bit_generator.state == other.bit_generator.state


def many_features(kind: str, n: int, rng: np.random.Generator) -> Floats:
    d = 6
    if kind == "one-hot":
        table: Floats = np.eye(d)[rng.choice(d, n, p=[0.9, 0.09, 0.007, 0.001, 0.001, 0.001])]
        return table
    if kind == "nearly collinear":
        return np.ones(d) + 1e-4 * rng.standard_normal((n, d))
    return rng.standard_normal((n, d))


@pytest.mark.parametrize("kind", ["one-hot", "nearly collinear", "dense"])
def test_a_hundred_thousand_updates_do_not_drift(kind: str) -> None:
    phi = many_features(kind, 100_000, np.random.default_rng(0))
    factor = np.eye(phi.shape[1])
    for row in phi.copy():
        rank_one_update(factor, row)
    fresh = np.linalg.cholesky(phi.T @ phi + np.eye(phi.shape[1])).T
    precision = fresh.T @ fresh
    assert np.linalg.norm(factor.T @ factor - precision) <= 1e-10 * np.linalg.norm(precision)
    assert np.all(np.diag(factor) > 0)
    # the small directions count too: they are where a posterior is wide
    small, large = np.linalg.eigvalsh(factor.T @ factor)[[0, -1]]
    wanted_small, wanted_large = np.linalg.eigvalsh(precision)[[0, -1]]
    assert large == pytest.approx(wanted_large, rel=1e-10)
    assert small == pytest.approx(wanted_small, rel=1e-10 * large / small)


@pytest.mark.parametrize("scale", [0.5, 3.0])
def test_draws_have_the_posterior_distribution(scale: float) -> None:
    """N(ŵ, ν²Ω⁻¹), whichever way they are drawn."""
    rng, factor = np.random.default_rng(1), np.eye(3) * np.sqrt(0.5)
    moment = np.zeros(3)
    for _ in range(12):
        x = rng.standard_normal(3) * [1.0, 3.0, 0.2]
        moment += x * rng.standard_normal()
        rank_one_update(factor, x)
    precision = factor.T @ factor
    half = moment.copy()
    solve_transposed(factor, half)
    together, alone = np.empty((20_001, 3)), np.empty(3)
    draw_many(factor, half, scale, np.random.default_rng(2), together)
    assert_distribution(together, np.linalg.solve(precision, moment), scale**2 * np.linalg.inv(precision))
    one = np.random.default_rng(2)
    for row in together[:5]:
        draw(factor, half, scale, one, alone)
        np.testing.assert_allclose(alone, row, rtol=1e-12)
