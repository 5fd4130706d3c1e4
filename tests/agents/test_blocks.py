"""The transitions of a regression as sparse matrices, beside dense ones."""

from __future__ import annotations

import numpy as np
from sparse_tables import ACTIONS, COUNT, PSI, ROWS, SIZE, columns_of, phi_of, sparse

from belated.agents._blocks import add_gram, cost, make_data, multiply
from belated.agents._transitions import TERMINAL


def test_moments_are_those_of_dense_matrices() -> None:
    data, _, visits = make_data(sparse(PSI), ROWS, ACTIONS, size=SIZE, joint=False)
    dense, columns = phi_of(PSI, ROWS), columns_of(data)
    assert columns == np.flatnonzero(dense.any(axis=0)).tolist()
    np.testing.assert_allclose(data.reward_moment, (dense.T @ ROWS.rewards)[columns])
    nexts = np.unique(ROWS.after[ROWS.after != TERMINAL]).tolist()
    wanted = np.zeros((ACTIONS * SIZE, len(nexts) + 1))
    for phi, after, often in zip(dense, ROWS.after.tolist(), ROWS.visits, strict=True):
        wanted[:, nexts.index(after) if after != TERMINAL else -1] += often * phi
    found, product = np.zeros((len(columns), len(nexts) + 1)), np.zeros(len(columns))
    for column, unit in enumerate(np.eye(len(nexts) + 1)):
        multiply(data.next_moment, unit, product)
        found[:, column] = product
    np.testing.assert_allclose(found, wanted[columns])
    assert visits.sum() == ROWS.visits.sum() == data.steps


def test_products_with_sparse_rows() -> None:
    weights, gram = np.array([1.0, 2.0, 0.5, 3.0, 1.0]), np.zeros((SIZE, SIZE))
    add_gram(sparse(PSI), weights, gram)
    np.testing.assert_allclose(gram, (PSI.T * weights) @ PSI)
    x, product = np.arange(1.0, SIZE + 1.0, dtype=np.float64), np.zeros(COUNT)
    multiply(sparse(PSI), x, product)
    np.testing.assert_allclose(product, PSI @ x)


def test_a_plan_of_more_steps_costs_more() -> None:
    data, _, _ = make_data(sparse(PSI), ROWS, ACTIONS, size=SIZE, joint=False)
    factoring = cost(data, 0)
    assert 0.0 < factoring < cost(data, 1)
    assert np.isclose(cost(data, 8) - factoring, 8 * (cost(data, 1) - factoring))
