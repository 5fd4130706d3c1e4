"""Sparse features in blocks of actions, beside dense matrices."""

from __future__ import annotations

import numpy as np
import pytest

from belated.agents._auto.blocks import (
    Data,
    add_gram,
    best_action,
    fill_leverages,
    make_data,
    make_factors,
    multiply,
    sweep,
)
from belated.agents._auto.rule import Rule, make_rule
from belated.agents._transitions import TERMINAL, Rows, Sparse
from belated.types import Floats

COUNT, SIZE, ACTIONS, HORIZON = 5, 4, 2, 3


def rule(**changed: float) -> Rule:
    settings = {"residual": 0.0, "hidden": 0.0, "prior": 0.0, **changed}
    return make_rule(HORIZON, (0.0, 1.0), optimistic=True, ridge=0.1, weighted=True, forgetting=True, **settings)


def sparse(table: Floats) -> Sparse:
    starts = np.cumsum([0, *(table != 0).sum(axis=1)])
    return Sparse(starts, np.nonzero(table)[1].astype(np.int64), table[table != 0])


@pytest.fixture
def psi() -> Floats:
    rng = np.random.default_rng(1)
    table = np.where(rng.random((COUNT, SIZE)) < 0.6, rng.random((COUNT, SIZE)), 0.0)
    table[np.arange(SIZE), np.arange(SIZE)] = 1.0
    return table


@pytest.fixture
def rows() -> Rows:
    rng = np.random.default_rng(2)
    keys = np.unique(
        np.stack([rng.integers(COUNT, size=20), rng.integers(ACTIONS, size=20), rng.integers(-1, COUNT, size=20)]),
        axis=1,
    )
    count = keys.shape[1]
    visits, rewards = rng.integers(1, 4, size=count).astype(float), rng.random((count,))
    return Rows(keys[0], keys[1], keys[2], visits, visits, visits * rewards, visits * rewards**2, rewards, rewards)


def phi_of(psi: Floats, rows: Rows) -> Floats:
    """Return φ = ψ(s) ⊗ e_a of each row, action by action."""
    phi = np.zeros((len(rows.state), ACTIONS, SIZE))
    phi[np.arange(len(rows.state)), rows.action] = psi[rows.state]
    return phi.reshape(len(rows.state), -1)


def columns_of(data: Data) -> list[int]:
    """Return which of the A·k dense features the active ones are."""
    action = np.repeat(np.arange(ACTIONS), np.diff(data.starts))
    return [int(column) for column in action * SIZE + data.active]


def test_factors_and_moments_are_those_of_dense_matrices(psi: Floats, rows: Rows) -> None:
    data, phi, visits = make_data(sparse(psi), rows, ACTIONS, size=SIZE, joint=False)
    factors = make_factors(rule(), data, phi, visits, 1.0, 0.0, 2, np.random.default_rng(0))
    dense, columns = phi_of(psi, rows), columns_of(data)
    assert columns == np.flatnonzero(dense.any(axis=0)).tolist()
    np.testing.assert_allclose(data.reward_moment, (dense.T @ rows.rewards)[columns])
    omega = (dense.T * rows.visits) @ dense + 0.1 * np.eye(ACTIONS * SIZE)
    at = 0
    for first, last in zip(data.starts[:-1], data.starts[1:], strict=True):
        k, chosen = last - first, columns[first:last]
        found = factors.inverse[at : at + k * k].reshape(k, k)
        np.testing.assert_allclose(found, np.linalg.inv(omega[np.ix_(chosen, chosen)]), rtol=1e-9)
        at += k * k
    assert factors.residual_noise.all()  # it is multiplied by the width in the sweep
    assert not factors.other_noise.any()  # neither a hidden width nor a prior


def test_without_noise_a_sweep_is_ridge_regression_from_the_last_step_on(psi: Floats, rows: Rows) -> None:
    data, phi, visits = make_data(sparse(psi), rows, ACTIONS, size=SIZE, joint=False)
    factors = make_factors(rule(), data, phi, visits, 1.0, 0.0, HORIZON, np.random.default_rng(0))
    weights = np.zeros((HORIZON, ACTIONS, SIZE))
    sweep(rule(), data, factors, 0, HORIZON, np.zeros((HORIZON, ACTIONS, SIZE)), weights)
    dense = phi_of(psi, rows)
    omega = (dense.T * rows.visits) @ dense + 0.1 * np.eye(ACTIONS * SIZE)
    value = np.zeros(COUNT)
    for h in range(HORIZON - 1, -1, -1):
        best = float(HORIZON - h)  # v₀
        after = np.where(rows.after == TERMINAL, 0.0, value[rows.after])
        wanted = np.linalg.solve(omega, dense.T @ (rows.rewards + rows.visits * (after - best)))
        np.testing.assert_allclose(weights[h].ravel(), wanted, atol=1e-9)
        value = np.clip(best + (psi @ wanted.reshape(ACTIONS, SIZE).T).max(axis=1), 0.0, best)


def test_products_with_sparse_rows(psi: Floats) -> None:
    weights = np.array([1.0, 2.0, 0.5, 3.0, 1.0])
    gram, leverages, inverse = (
        np.zeros((SIZE, SIZE)),
        np.zeros(COUNT),
        np.cov(np.random.default_rng(0).random((SIZE, 9))),
    )
    add_gram(sparse(psi), weights, gram)
    np.testing.assert_allclose(gram, (psi.T * weights) @ psi)
    fill_leverages(sparse(psi), inverse, leverages)
    np.testing.assert_allclose(leverages, np.einsum("pi,ij,pj->p", psi, inverse, psi))
    x, product = np.arange(1.0, SIZE + 1.0, dtype=np.float64), np.zeros(COUNT)
    multiply(sparse(psi), x, product)
    np.testing.assert_allclose(product, psi @ x)


def test_the_best_action_by_known_features() -> None:
    weights, known, q = np.array([[1.0, -1.0], [0.5, 2.0]]), np.array([3, 7]), np.zeros(2)
    stacked = np.zeros(0, np.int64)
    assert best_action(weights, known, stacked, np.array([3]), np.array([1.0]), q) == 0
    assert best_action(weights, known, stacked, np.array([3, 7]), np.array([1.0, 1.0]), q) == 1
    assert best_action(weights, known, stacked, np.array([5]), np.array([1.0]), q) == -1  # nothing is known of it


def test_the_best_action_by_joint_features() -> None:
    weights, known, q = np.array([[1.0, -1.0]]), np.array([3, 7]), np.zeros(2)
    starts, indices = np.array([0, 1, 3]), np.array([3, 3, 7])
    assert best_action(weights, known, starts, indices, np.array([1.0, 2.0, 0.5]), q) == 1
    assert q.tolist() == [1.0, 1.5]
    assert best_action(weights, known, starts, indices, np.array([1.0, 2.0, 3.0]), q) == 0
