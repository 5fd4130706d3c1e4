"""The columns of rows: arrays and frames of the same content."""

from __future__ import annotations

import numpy as np
import pytest

import belated
from belated.delays import NEVER
from belated.runner._rows import COLUMNS, BlockRows, check_rows, from_frame, make_columns, recorded, schema, to_frame

WORLD = belated.RiverSwim()
LOSSY = belated.Lossy(belated.Geometric(3), 0.3)


def test_a_frame_has_the_columns_in_their_order_and_types() -> None:
    frame = to_frame(make_columns(3))
    assert dict(frame.schema) == schema()
    assert list(frame.columns) == list(COLUMNS)
    assert set(BlockRows._fields) < set(COLUMNS)


def test_what_never_arrives_is_null_in_a_frame_and_comes_back() -> None:
    columns = make_columns(3)
    columns["delay"][:] = 4, NEVER, 0
    frame = to_frame(columns)
    assert frame["delay"].to_list() == [4, None, 0]
    assert from_frame(frame)["delay"].tolist() == [4, NEVER, 0]


@pytest.mark.parametrize("every", [1, 2, 7, 100, 101])
def test_every_nth_episode_and_the_last_are_recorded(every: int) -> None:
    found = recorded(np.arange(100), 99, every).tolist()
    assert found == [k for k in range(100) if (k + 1) % every == 0 or k == 99]


@pytest.mark.parametrize("every", [1, 7])
def test_the_rows_of_a_run_pass_their_own_check(every: int) -> None:
    for world in (WORLD, belated.LinearBandit(noise=0.5), belated.AdversarialMDP()):
        rows = belated.simulate(world, belated.RandomPolicy(), LOSSY, episodes=100, seed=0, record_every=every)
        check_rows(from_frame(rows), world, 100, every)
        with pytest.raises(belated.InvalidInputError, match="column episode"):
            check_rows(from_frame(rows), world, 200, every)
