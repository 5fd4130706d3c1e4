"""Langevin chains have the distribution that the closed form gives them, and λ_max is the largest eigenvalue."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import numpy.typing as npt
import pytest
from moments import assert_distribution

from belated._kernels import langevin
from belated._kernels.jit import entry_point
from belated._kernels.langevin import KRYLOV

Floats = npt.NDArray[np.float64]

plain_chain = entry_point(langevin.plain_chain)
collapsed_draw = entry_point(langevin.collapsed_draw)
largest_eigenvalue = entry_point(langevin.largest_eigenvalue)
preconditioned_chain = entry_point(langevin.preconditioned_chain)

CHAINS = 20_000

PRECISION = np.array([[4.0, 1.0, 0.0], [1.0, 2.0, 0.3], [0.0, 0.3, 0.5]])
MOMENT = np.array([1.0, -3.0, 0.7])
START = np.array([3.0, 1.0, -4.0])


def largest(matrix: Floats) -> float:
    d = len(matrix)
    krylov = min(d, KRYLOV)
    work = np.zeros((krylov + 1, d)), np.zeros(krylov), np.zeros(krylov)
    return largest_eigenvalue(np.ascontiguousarray(matrix, dtype=np.float64), *work)


def closed_form(step: float, temperature: float, steps: int) -> tuple[Floats, Floats]:
    """Return Aᴺw₀ + (I − Aᴺ)ŵ and Θ = γ(I − A²ᴺ)Ω⁻¹(I + A)⁻¹."""
    identity = np.eye(3)
    a = identity - 2 * step * PRECISION
    kept = np.linalg.matrix_power(a, steps)
    mean = kept @ START + (identity - kept) @ np.linalg.solve(PRECISION, MOMENT)
    covariance = temperature * (identity - kept @ kept) @ np.linalg.inv(PRECISION) @ np.linalg.inv(identity + a)
    return mean, covariance


def many(draw: Callable[[Floats], None]) -> Floats:
    draws = np.empty((CHAINS, 3))
    for weights in draws:
        weights[:] = START
        draw(weights)
    return draws


DELAYS = pytest.mark.parametrize(
    ("ratio", "temperature", "steps"), [(0.3, 0.5, 5), (0.5, 2.0, 40), (0.9, 1.0, 3), (0.25, 1.0, 1)]
)


@DELAYS
def test_plain_chain_has_the_distribution_of_the_closed_form(ratio: float, temperature: float, steps: int) -> None:
    step = ratio / float(np.linalg.eigvalsh(PRECISION)[-1])
    rng, gradient = np.random.default_rng(steps), np.empty(3)
    draws = many(lambda w: plain_chain(PRECISION, MOMENT, step, temperature, steps, rng, w, gradient))
    assert_distribution(draws, *closed_form(step, temperature, steps))


@DELAYS
def test_collapsed_draw_has_the_same_distribution(ratio: float, temperature: float, steps: int) -> None:
    values, vectors = np.linalg.eigh(PRECISION)
    rows, step = np.ascontiguousarray(vectors.T), ratio / float(values[-1])
    rng, rotated = np.random.default_rng(steps + 100), np.empty(3)
    draws = many(lambda w: collapsed_draw(values, rows, MOMENT, step, temperature, steps, rng, w, rotated))
    assert_distribution(draws, *closed_form(step, temperature, steps))


@DELAYS
def test_preconditioned_chain_has_its_own_closed_form(ratio: float, temperature: float, steps: int) -> None:
    factor = np.ascontiguousarray(np.linalg.cholesky(PRECISION).T)
    estimate = np.linalg.solve(PRECISION, MOMENT)
    rng, noise = np.random.default_rng(steps + 200), np.empty(3)
    draws = many(lambda w: preconditioned_chain(factor, estimate, ratio, temperature, steps, rng, w, noise))
    kept = (1 - 2 * ratio) ** steps
    grown = sum((1 - 2 * ratio) ** (2 * power) for power in range(steps))
    covariance = 2 * ratio * temperature * grown * np.linalg.inv(PRECISION)
    assert_distribution(draws, kept * START + (1 - kept) * estimate, covariance)


def test_one_half_makes_the_preconditioned_chain_exact() -> None:
    factor = np.ascontiguousarray(np.linalg.cholesky(PRECISION).T)
    estimate = np.linalg.solve(PRECISION, MOMENT)
    rng, noise = np.random.default_rng(8), np.empty(3)
    draws = many(lambda w: preconditioned_chain(factor, estimate, 0.5, 3.0, 4, rng, w, noise))
    assert_distribution(draws, estimate, 3.0 * np.linalg.inv(PRECISION))


@pytest.mark.parametrize("steps", [1, 2, 3, 25])
def test_without_noise_both_samplers_follow_the_mean_path(steps: int) -> None:
    values, vectors = np.linalg.eigh(PRECISION)
    step = 0.4 / float(values[-1])
    plain, collapsed, rng = START.copy(), START.copy(), np.random.default_rng(0)
    plain_chain(PRECISION, MOMENT, step, 0.0, steps, rng, plain, np.empty(3))
    rows = np.ascontiguousarray(vectors.T)
    collapsed_draw(values, rows, MOMENT, step, 0.0, steps, rng, collapsed, np.empty(3))
    mean, _ = closed_form(step, 0.0, steps)
    np.testing.assert_allclose(plain, mean, rtol=1e-12)
    np.testing.assert_allclose(collapsed, mean, rtol=1e-12)


@pytest.mark.parametrize("steps", [1, 4])
def test_chains_draw_d_normals_a_step(steps: int) -> None:
    factor = np.ascontiguousarray(np.linalg.cholesky(PRECISION).T)
    values, vectors = np.linalg.eigh(PRECISION)
    rng, other, work = np.random.default_rng(1), np.random.default_rng(1), np.empty(3)
    plain_chain(PRECISION, MOMENT, 0.1, 1.0, steps, rng, START.copy(), work)
    other.standard_normal(3 * steps)
    assert rng.bit_generator.state == other.bit_generator.state
    preconditioned_chain(factor, MOMENT, 0.1, 1.0, steps, rng, START.copy(), work)
    other.standard_normal(3 * steps)
    assert rng.bit_generator.state == other.bit_generator.state
    rows = np.ascontiguousarray(vectors.T)
    collapsed_draw(values, rows, MOMENT, 0.1, 1.0, steps, rng, START.copy(), work)
    other.standard_normal(3)
    assert rng.bit_generator.state == other.bit_generator.state


def gram(d: int, samples: int, seed: int) -> Floats:
    x = np.random.default_rng(seed).standard_normal((samples, d))
    return x.T @ x + np.eye(d)


def rotated(eigenvalues: npt.ArrayLike, seed: int) -> Floats:
    values = np.asarray(eigenvalues, dtype=np.float64)
    basis, _ = np.linalg.qr(np.random.default_rng(seed).standard_normal((values.size, values.size)))
    matrix: Floats = (basis * values) @ basis.T
    return (matrix + matrix.T) / 2


def counts(d: int, visits: int, seed: int) -> Floats:
    seen = np.random.default_rng(seed).integers(d, size=visits)
    return np.diag(1.0 + np.bincount(seen, minlength=d))


MATRICES: dict[str, Floats] = {
    "one by one": np.array([[3.7]]),
    "two by two": np.array([[2.0, -1.0], [-1.0, 5.0]]),
    "identity": np.eye(7),
    "large identity": 0.01 * np.eye(100),
    "near-equal top values": np.diag([1.0, 3.0 - 1e-12, 2.0, 3.0, 3.0 - 1e-9]),
    "near-equal top values, rotated": rotated([1.0, 3.0 - 1e-12, 2.0, 3.0, 3.0 - 1e-9, 0.1], 1),
    "random, d = 10": gram(10, 30, 2),
    "random, d = KRYLOV": gram(KRYLOV, 90, 3),
    "random, d = KRYLOV + 1": gram(KRYLOV + 1, 90, 4),
    "random, d = 100": gram(100, 300, 5),
    "random, few samples": gram(100, 5, 6),
    "one-hot counts, d = 10": counts(10, 500, 7),
    "one-hot counts, d = 100": counts(100, 1000, 8),
    "all counts different": np.diag(np.arange(1.0, 101.0)),
    "clustered spectrum": rotated([1.0] * 30 + [1.0 + 1e-8] * 30 + [5.0] * 20 + [5.0 + 1e-6] * 20, 9),
    "spaced evenly below the top": np.diag(np.linspace(0.9, 1.0, 100)),
    "huge condition number": rotated(np.logspace(-6, 6, 60), 10),
    "one direction dominates": np.eye(60) + 1e9 * np.outer(np.ones(60), np.ones(60)),
}


@pytest.mark.parametrize("name", list(MATRICES))
def test_largest_eigenvalue(name: str) -> None:
    matrix = MATRICES[name]
    assert largest(matrix) == pytest.approx(float(np.linalg.eigvalsh(matrix)[-1]), rel=1e-10)


@pytest.mark.parametrize("d", [1, 2, 3, 8, 20, KRYLOV, 70])
def test_largest_eigenvalue_of_many_random_matrices(d: int) -> None:
    for seed in range(25):
        matrix = gram(d, 1 + seed * 3, seed)
        assert largest(matrix) == pytest.approx(float(np.linalg.eigvalsh(matrix)[-1]), rel=1e-10)


@pytest.mark.parametrize("gap", [1e-7, 1e-8, 1e-10, 1e-13])
def test_largest_eigenvalue_errs_by_less_than_a_gap_too_narrow_to_see(gap: float) -> None:
    """Beyond KRYLOV dimensions, two groups of top values this close are one to the iteration."""
    matrix = rotated([1.0] * 60 + [5.0] * 20 + [5.0 + gap] * 20, 9)
    error = largest(matrix) / float(np.linalg.eigvalsh(matrix)[-1]) - 1.0
    assert -gap / 5.0 - 1e-13 <= error <= 1e-13


def test_largest_eigenvalue_notices_that_another_direction_has_overtaken() -> None:
    seen = np.ones(6)
    for direction in [2] * 5 + [4] * 9 + [0] * 20 + [4] * 15:
        seen[direction] += 1.0
        assert largest(np.diag(seen)) == pytest.approx(seen.max(), rel=1e-12)


@pytest.mark.parametrize("visits", [1, 7, 50, 200, 5000])
@pytest.mark.parametrize("d", [4, 8, 16, 64])
def test_largest_eigenvalue_of_factorial_designs(d: int, visits: int) -> None:
    """Features of ±1, as effects and their interactions have: each row of a Hadamard matrix, visited alone."""
    hadamard = np.array([[1.0]])
    while len(hadamard) < d:
        hadamard = np.block([[hadamard, hadamard], [hadamard, -hadamard]])
    for row in hadamard:
        matrix = np.eye(d) + visits * np.outer(row, row)
        assert largest(matrix) == pytest.approx(1.0 + visits * d, rel=1e-10)


@pytest.mark.parametrize("d", [2, 4, 6, 9])
def test_largest_eigenvalue_of_contrasts(d: int) -> None:
    """Features in {−1, 0, 1}: every one of them, visited a few times alone."""
    every = np.array(np.meshgrid(*[[-1.0, 0.0, 1.0]] * min(d, 6))).reshape(min(d, 6), -1).T
    for row in every:
        phi = np.concatenate([row, np.zeros(d - row.size)])
        matrix = np.eye(d) + 3.0 * np.outer(phi, phi)
        assert largest(matrix) == pytest.approx(1.0 + 3.0 * phi @ phi, rel=1e-10)
