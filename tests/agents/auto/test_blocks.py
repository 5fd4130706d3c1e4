"""Sparse features in blocks of actions, beside dense matrices."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from sparse_tables import ACTIONS, COUNT, PSI, ROWS, SIZE, columns_of, phi_of, sparse

from belated.agents._auto.blocks import fill_leverages, linear_values, make_factors, sweep
from belated.agents._auto.members import LANES, sweep_together
from belated.agents._auto.rule import Rule, make_rule
from belated.agents._blocks import make_data, transposed
from belated.agents._transitions import TERMINAL

HORIZON = 3


def rule(**changed: float) -> Rule:
    settings: dict[str, Any] = {"residual": 0.0, "hidden": 0.0, "prior": 0.0, "hurried": False, **changed}
    return make_rule(HORIZON, (0.0, 1.0), ridge=0.1, **settings)


def test_factors_are_those_of_dense_matrices() -> None:
    data, phi, visits = make_data(sparse(PSI), ROWS, ACTIONS, size=SIZE, joint=False)
    factors = make_factors(rule(), data, phi, visits, 1.0, 2, np.random.default_rng(0))
    dense, columns = phi_of(PSI, ROWS), columns_of(data)
    omega = (dense.T * ROWS.visits) @ dense + 0.1 * np.eye(ACTIONS * SIZE)
    at = 0
    for first, last in zip(data.starts[:-1], data.starts[1:], strict=True):
        k, chosen = last - first, columns[first:last]
        found = factors.inverse[at : at + k * k].reshape(k, k)
        np.testing.assert_allclose(found, np.linalg.inv(omega[np.ix_(chosen, chosen)]), rtol=1e-9)
        at += k * k
    assert factors.residual_noise.all()  # both are multiplied by a width in the sweep
    assert factors.hidden_noise.any()
    assert not factors.prior_noise.any()
    leverages = np.einsum("ni,ij,nj->n", dense, np.linalg.inv(omega), dense)
    assert factors.freedom == pytest.approx(float(ROWS.visits @ (1 - leverages)))


def test_without_noise_a_sweep_is_ridge_regression_from_the_last_step_on() -> None:
    data, phi, visits = make_data(sparse(PSI), ROWS, ACTIONS, size=SIZE, joint=False)
    factors = make_factors(rule(), data, phi, visits, 1.0, HORIZON, np.random.default_rng(0))
    weights = np.zeros((HORIZON, ACTIONS, SIZE))
    sweep(rule(), data, factors, 1.0, 0, HORIZON, np.zeros((HORIZON, ACTIONS, SIZE)), weights)
    dense = phi_of(PSI, ROWS)
    omega = (dense.T * ROWS.visits) @ dense + 0.1 * np.eye(ACTIONS * SIZE)
    value = np.zeros(COUNT)
    for h in range(HORIZON - 1, -1, -1):
        best = float(HORIZON - h)  # v₀
        after = np.where(ROWS.after == TERMINAL, 0.0, value[ROWS.after])
        wanted = np.linalg.solve(omega, dense.T @ (ROWS.rewards + ROWS.visits * (after - best)))
        np.testing.assert_allclose(weights[h].ravel(), wanted, atol=1e-9)
        value = np.clip(best + (PSI @ wanted.reshape(ACTIONS, SIZE).T).max(axis=1), 0.0, best)


def test_plans_of_a_set_are_those_of_single_sweeps() -> None:
    full = rule(residual=1.0, hidden=1.0, prior=1.0)
    data, phi, visits = make_data(sparse(PSI), ROWS, ACTIONS, size=SIZE, joint=False)
    rng = np.random.default_rng(0)
    factors = make_factors(full, data, phi, visits, 1.0, LANES * HORIZON, rng)
    untried = rng.standard_normal((LANES, HORIZON, ACTIONS, SIZE))
    noises = ("residual_noise", "hidden_noise", "prior_noise")
    noise = {name: getattr(factors, name).reshape(LANES, HORIZON, -1) for name in noises}
    together = np.zeros((HORIZON, ACTIONS, SIZE, LANES))
    leads_to = transposed(data.next_moment, data.arrivals.size)
    sweep_together(full, data, leads_to, factors._replace(**noise), 0.5, 0, HORIZON, untried, together)
    for j in range(LANES):
        alone = np.zeros((HORIZON, ACTIONS, SIZE))
        own = factors._replace(**{name: noise[name][j] for name in noises})
        sweep(full, data, own, 0.5, 0, HORIZON, untried[j], alone)
        np.testing.assert_allclose(together[..., j], alone, rtol=1e-9, atol=1e-9)


def test_leverages() -> None:
    leverages, inverse = np.zeros(COUNT), np.cov(np.random.default_rng(0).random((SIZE, 9)))
    fill_leverages(sparse(PSI), inverse, leverages)
    np.testing.assert_allclose(leverages, np.einsum("pi,ij,pj->p", PSI, inverse, PSI))


def test_action_values_by_known_features() -> None:
    weights, known, stacked = np.array([[1.0, -1.0], [0.5, 2.0]]), np.array([3, 7]), np.zeros(0, np.int64)

    def values(indices: list[int]) -> list[float]:
        q = np.zeros(2)
        linear_values(weights, known, stacked, np.array(indices), np.ones(len(indices)), q)
        return q.tolist()

    assert values([3]) == [1.0, 0.5]
    assert values([3, 7]) == [0.0, 2.5]
    assert values([5]) == [0.0, 0.0]  # nothing is known of it


def test_action_values_by_joint_features() -> None:
    q, starts, indices = np.zeros(2), np.array([0, 1, 3]), np.array([3, 3, 7])
    linear_values(np.array([[1.0, -1.0]]), np.array([3, 7]), starts, indices, np.array([1.0, 2.0, 0.5]), q)
    assert q.tolist() == [1.0, 1.5]
