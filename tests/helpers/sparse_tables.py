"""Small tables of sparse features, and transitions between their states."""

from __future__ import annotations

import numpy as np

from belated.agents._blocks import Data
from belated.agents._transitions import Rows, Sparse
from belated.types import Floats

COUNT, SIZE, ACTIONS = 5, 4, 2


def sparse(table: Floats) -> Sparse:
    starts = np.cumsum([0, *(table != 0).sum(axis=1)])
    return Sparse(starts, np.nonzero(table)[1].astype(np.int64), table[table != 0])


def some_features() -> Floats:
    rng = np.random.default_rng(1)
    table = np.where(rng.random((COUNT, SIZE)) < 0.6, rng.random((COUNT, SIZE)), 0.0)
    table[np.arange(SIZE), np.arange(SIZE)] = 1.0
    return table


def some_rows() -> Rows:
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


PSI, ROWS = some_features(), some_rows()
