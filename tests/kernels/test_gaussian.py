"""The incremental Gaussian posterior is the textbook one, in any order, and stays so after many arrivals."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given
from hypothesis import strategies as st
from moments import assert_distribution

from belated._kernels import GaussianPosterior
from belated._kernels.gaussian import dot, draw, rank_one_update, solve, solve_transposed
from belated.errors import InvalidInputError

Floats = npt.NDArray[np.float64]


def positive_definite(d: int, seed: int, spread: float = 1.0) -> Floats:
    rng = np.random.default_rng(seed)
    basis, _ = np.linalg.qr(rng.standard_normal((d, d)))
    matrix: Floats = (basis * np.exp(spread * rng.standard_normal(d))) @ basis.T
    return (matrix + matrix.T) / 2


def test_one_dimension_by_hand() -> None:
    # Ω = 2 + (3² + 1²)/0.5² = 42;  b = (3·1 + 1·(−2))/0.5² = 4;  ŵ = 4/42
    posterior = GaussianPosterior(1, ridge=2.0, noise=0.5)
    posterior.update([3.0], 1.0)
    posterior.update([1.0], -2.0)
    assert posterior.precision() == pytest.approx(np.array([[42.0]]), rel=1e-14)
    assert posterior.mean() == pytest.approx(np.array([4 / 42]), rel=1e-14)
    assert posterior.covariance() == pytest.approx(np.array([[1 / 42]]), rel=1e-14)
    z = np.random.default_rng(3).standard_normal()
    drawn = posterior.draw(np.random.default_rng(3), scale=1.5)
    assert drawn == pytest.approx(np.array([4 / 42 + 1.5 * z / np.sqrt(42)]), rel=1e-14)
    assert posterior.observations == 2


def test_is_the_prior_before_any_data() -> None:
    posterior = GaussianPosterior(3, ridge=4.0, noise=0.1)
    np.testing.assert_array_equal(posterior.mean(), np.zeros(3))
    np.testing.assert_allclose(posterior.precision(), 4.0 * np.eye(3), rtol=1e-15)
    np.testing.assert_allclose(posterior.covariance(), np.eye(3) / 4.0, rtol=1e-15)
    z = np.random.default_rng(0).standard_normal(3)
    np.testing.assert_allclose(posterior.draw(np.random.default_rng(0), scale=3.0), 1.5 * z, rtol=1e-15)
    assert posterior.observations == 0


@pytest.mark.parametrize("d", [1, 2, 5, 17])
def test_against_the_batch_formulas(d: int) -> None:
    rng = np.random.default_rng(d)
    phi, y = rng.standard_normal((30, d)), rng.standard_normal(30)
    posterior = GaussianPosterior(d, ridge=0.3, noise=0.7)
    for row, target in zip(phi, y, strict=True):
        posterior.update(row, target)
    precision = phi.T @ phi / 0.49 + 0.3 * np.eye(d)
    np.testing.assert_allclose(posterior.precision(), precision, rtol=1e-12, atol=1e-12)
    np.testing.assert_allclose(posterior.covariance(), np.linalg.inv(precision), rtol=1e-10, atol=1e-12)
    mean = np.linalg.solve(precision, phi.T @ y / 0.49)
    np.testing.assert_allclose(posterior.mean(), mean, rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize("scale", [0.5, 3.0])
def test_draws_have_the_posterior_distribution(scale: float) -> None:
    rng = np.random.default_rng(1)
    posterior = GaussianPosterior(3, ridge=0.5, noise=2.0)
    for _ in range(12):
        posterior.update(rng.standard_normal(3) * [1.0, 3.0, 0.2], rng.standard_normal())
    draws = np.array([posterior.draw(rng, scale=scale) for _ in range(20_000)])
    assert_distribution(draws, posterior.mean(), scale**2 * np.linalg.inv(posterior.precision()))


def test_a_draw_of_scale_zero_is_the_mean() -> None:
    posterior = GaussianPosterior(2)
    posterior.update([1.0, 2.0], 3.0)
    drawn = posterior.draw(np.random.default_rng(0), scale=0.0)
    np.testing.assert_allclose(drawn, posterior.mean(), rtol=1e-14)
    np.testing.assert_allclose(drawn, [0.5, 1.0], rtol=1e-14)


OBSERVATIONS = st.integers(1, 4).flatmap(
    lambda d: st.lists(
        st.tuples(st.lists(st.floats(-3, 3, width=32), min_size=d, max_size=d), st.floats(-5, 5, width=32)),
        min_size=1,
        max_size=12,
    )
)


@given(OBSERVATIONS, st.randoms(use_true_random=False))
def test_the_order_does_not_matter(observations: list[tuple[list[float], float]], shuffler: object) -> None:
    shuffled = list(observations)
    shuffler.shuffle(shuffled)  # type: ignore[attr-defined]
    d = len(observations[0][0])
    one, two = GaussianPosterior(d, ridge=0.5, noise=0.8), GaussianPosterior(d, ridge=0.5, noise=0.8)
    for features, target in observations:
        one.update(features, target)
    for features, target in shuffled:
        two.update(features, target)
    np.testing.assert_allclose(one.precision(), two.precision(), rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(one.mean(), two.mean(), rtol=1e-9, atol=1e-9)


@given(OBSERVATIONS)
def test_the_precision_stays_positive_definite(observations: list[tuple[list[float], float]]) -> None:
    d = len(observations[0][0])
    posterior = GaussianPosterior(d, ridge=0.5)
    for features, target in observations:
        posterior.update(features, target)
        assert np.linalg.eigvalsh(posterior.precision())[0] >= 0.5 * (1 - 1e-9)


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


def test_the_mean_does_not_drift() -> None:
    rng = np.random.default_rng(4)
    phi = rng.standard_normal((20_000, 4))
    y = phi @ [1.0, -2.0, 0.5, 0.0] + rng.standard_normal(20_000)
    posterior = GaussianPosterior(4, ridge=0.1, noise=1.0)
    for row, target in zip(phi, y, strict=True):
        posterior.update(row, target)
    fresh = np.linalg.solve(phi.T @ phi + 0.1 * np.eye(4), phi.T @ y)
    np.testing.assert_allclose(posterior.mean(), fresh, rtol=1e-10)


@pytest.mark.parametrize(
    ("settings", "name", "value"),
    [
        ({"dimension": 0}, "dimension", "0"),
        ({"dimension": 2.0}, "dimension", "2.0"),
        ({"ridge": 0.0}, "ridge", "0.0"),
        ({"ridge": float("nan")}, "ridge", "nan"),
        ({"noise": -1.0}, "noise", "-1.0"),
        ({"noise": "1"}, "noise", "'1'"),
    ],
)
def test_bad_settings_are_named(settings: dict[str, object], name: str, value: str) -> None:
    with pytest.raises(InvalidInputError, match=rf"^{name} must be .*got {value}$"):
        GaussianPosterior(**{"dimension": 2, **settings})  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("features", "target", "name"),
    [
        ([1.0], 0.0, "features"),
        ([1.0, np.inf], 0.0, "features"),
        ([1.0, 2.0], np.nan, "target"),
        ([1.0, 2.0], None, "target"),
    ],
)
def test_a_bad_observation_changes_nothing(features: list[float], target: float, name: str) -> None:
    posterior = GaussianPosterior(2)
    posterior.update([1.0, 1.0], 1.0)
    before = posterior.mean(), posterior.precision(), posterior.observations
    with pytest.raises(InvalidInputError, match=rf"^{name} must"):
        posterior.update(features, target)
    np.testing.assert_array_equal(posterior.mean(), before[0])
    np.testing.assert_array_equal(posterior.precision(), before[1])
    assert posterior.observations == before[2]


def test_a_bad_scale_is_named() -> None:
    with pytest.raises(InvalidInputError, match=r"^scale must be .*got -0\.5$"):
        GaussianPosterior(2).draw(np.random.default_rng(0), scale=-0.5)


def test_repr_shows_marginal_means_and_deviations() -> None:
    posterior = GaussianPosterior(8, ridge=4.0)
    assert (
        repr(posterior)
        == "GaussianPosterior(observations=0, mean=[0, 0, 0, 0, 0, 0, ...], sd=[0.5, 0.5, 0.5, 0.5, 0.5, 0.5, ...])"
    )
