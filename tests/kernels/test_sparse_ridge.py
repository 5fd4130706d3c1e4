"""Every member of the sparse solver is the dense solution of its own perturbed regression."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pytest

from belated._kernels import sparse_ridge
from belated._kernels.jit import entry_point
from belated._kernels.sparse_ridge import Problem, fill_prior, rebuild, remove, solve, sweep

standard_normals = entry_point(sparse_ridge.standard_normals)

Singles = npt.NDArray[np.float32]
D, ROWS, MEMBERS = 40, 60, 5
SIGMA, TAU = 0.5, 0.7
KEYS = np.arange(D) * 3


def normals(seed: int, key: int, members: int = MEMBERS) -> Singles:
    out = np.empty(members, np.float32)
    standard_normals(seed, key, out)
    return out


def problem(members: int = 1) -> Problem:
    """Return rows of 0 to 8 places, with weights, targets of their own in each member, and unequal prior variances."""
    rng = np.random.default_rng(0)
    ends = np.cumsum(rng.integers(0, 9, ROWS))
    begins = np.concatenate([[0], ends[:-1]])
    places = np.concatenate(
        [rng.choice(D, end - begin, replace=False) for begin, end in zip(begins, ends, strict=True)]
    )
    values, targets = rng.standard_normal(len(places)), rng.standard_normal((ROWS, members))
    omegas, relative = rng.uniform(0.1, 1.0, ROWS), rng.uniform(0.2, 1.0, D)
    return Problem(
        begins, ends, places.astype(np.int32), values.astype(np.float32), targets.astype(np.float32),
        omegas.astype(np.float32), np.arange(ROWS) + 1000, relative.astype(np.float32),
        SIGMA, SIGMA**2 / TAU**2, 1.0, 7,
    )  # fmt: skip


def start(given: Problem) -> tuple[Singles, Singles]:
    weights, duals = np.empty((D, MEMBERS), np.float32), np.zeros((ROWS, MEMBERS), np.float32)
    fill_prior(weights, KEYS, given.relative, TAU, 3)
    return weights, duals


def solution(given: Problem, rows: list[int]) -> npt.NDArray[np.float64]:
    """Solve each member's regression on some rows with dense matrices."""
    x = np.zeros((ROWS, D))
    for i in range(ROWS):
        some = slice(given.begins[i], given.ends[i])
        x[i, given.places[some]] = given.values[some]
    x, omega = x[rows], given.weights[rows].astype(float)
    noise = np.array([normals(given.seed, int(given.keys[i])) for i in rows])
    targets = given.targets[rows] + SIGMA / np.sqrt(omega)[:, None] * noise
    prior = TAU * np.sqrt(given.relative)[:, None] * np.array([normals(3, int(key)) for key in KEYS])
    precision = np.diag(1.0 / (TAU**2 * given.relative.astype(float)))
    moment = x.T @ (omega[:, None] * targets) / SIGMA**2 + precision @ prior
    found: npt.NDArray[np.float64] = np.linalg.solve((x.T * omega) @ x / SIGMA**2 + precision, moment)
    return found


@pytest.mark.parametrize("members", [1, MEMBERS])
def test_a_member_solves_its_perturbed_regression(members: int) -> None:
    given = problem(members)
    weights, duals = start(given)
    sweeps, residual = solve(given, weights, duals, 1e-6, 1000)
    assert sweeps < 1000
    assert residual <= 1e-6
    assert np.allclose(weights, solution(given, list(range(ROWS))), atol=1e-5)


def test_rows_come_and_go() -> None:
    given, rows = problem(), list(range(ROWS))
    weights, duals = start(given)
    for _ in range(300):
        sweep(given, np.arange(ROWS), weights, duals)
    for gone in (3, 17, 59):
        remove(given, gone, weights, duals)
        rows.remove(gone)
    assert not duals[[3, 17, 59]].any()
    for _ in range(300):
        residual = sweep(given, np.array(rows), weights, duals)
    assert residual < 1e-12
    assert np.allclose(weights, solution(given, rows), atol=1e-5)


def test_weights_follow_from_duals() -> None:
    given = problem()
    weights, duals = start(given)
    prior, again = weights.copy(), np.empty_like(weights)
    sweep(given, np.arange(ROWS), weights, duals)
    rebuild(given, prior, again, duals)
    assert np.allclose(again, weights, atol=1e-6)
    assert not np.allclose(again, prior, atol=0.1)


def test_one_step_by_hand() -> None:
    """One row, one place of value 2, no perturbation, y = 3, σ = 1/2, κ = 1: w = 2·3/(2² + 1), β = w/2."""
    one, first = np.ones(1, np.float32), np.zeros(1, np.int64)
    given = Problem(
        first, first + 1, np.zeros(1, np.int32), 2 * one, np.full((1, 1), 3, np.float32), one, first, one,
        0.5, 1.0, 0.0, 0,
    )  # fmt: skip
    weights, duals = np.zeros((1, MEMBERS), np.float32), np.zeros((1, MEMBERS), np.float32)
    assert sweep(given, first, weights, duals) == pytest.approx(3**2 / 0.5**2 * 4 / 5)
    assert weights == pytest.approx(1.2)
    assert duals == pytest.approx(0.6)
    assert sweep(given, first, weights, duals) < 1e-10


def test_normals_are_those_of_their_key_alone() -> None:
    assert (normals(1, 2) == normals(1, 2)).all()
    assert (normals(1, 2, 4) == normals(1, 2)[:4]).all()  # whatever the number of members
    assert not (normals(1, 2) == normals(1, 3)).any()
    assert not (normals(1, 2) == normals(2, 2)).any()
    many = np.concatenate([normals(9, key, 200) for key in range(1000)]).astype(float)
    assert many.mean() == pytest.approx(0.0, abs=4 / 200_000**0.5)
    assert many.var() == pytest.approx(1.0, abs=0.013)
    assert (many**4).mean() == pytest.approx(3.0, abs=0.1)
    assert abs(np.corrcoef(many[:-1], many[1:])[0, 1]) < 0.01
    assert 4.0 < np.abs(many).max() < 6.0
