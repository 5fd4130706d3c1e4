from __future__ import annotations

import numpy as np
import pytest

from belated.errors import BelatedError
from belated_studies.exploration import grids, lander
from belated_studies.exploration.worlds import blackjack_table, grid, left_out, minatar, pendulum, require


def test_what_is_not_installed_is_left_out_with_a_remark() -> None:
    assert lander.problems() and "lunar" in lander.GAMES and len(grids.problems()) == 5
    assert left_out("minigrid") == []
    (remark,) = left_out("no_such_module")
    assert "no_such_module" in remark and "belated-studies[exploration]" in remark
    with pytest.raises(BelatedError, match=r"no_such_module is not installed: pip install"):
        require("no_such_module")


def test_five_torques() -> None:
    env = pendulum()
    env.reset(seed=0)
    assert [float(env.action(a)[0]) for a in range(5)] == [-2.0, -1.0, 0.0, 1.0, 2.0]
    assert env.action_space.n == 5 and np.isfinite(env.step(4)[1])


def test_a_grid_is_seen_whole_or_by_a_view_and_may_pay_one() -> None:
    assert grid("MiniGrid-Empty-5x5-v0").observation_space.shape == (5, 5, 3)
    env = grid("MiniGrid-Empty-5x5-v0", view=True, constant=True)
    assert env.reset(seed=0)[0].shape == (7, 7, 3)
    steps = [env.step(action) for action in (2, 2, 1, 2, 2)]  # forward, forward, right, forward, forward
    assert [step[1] for step in steps] == [0.0, 0.0, 0.0, 0.0, 1.0] and steps[-1][2]
    env = grid("MiniGrid-Empty-5x5-v0", table=True)
    first, second = env.reset(seed=0)[0], env.step(2)[0]
    assert first == env.reset(seed=1)[0] != second


def test_observations_become_numbers() -> None:
    env = blackjack_table()
    seen = {env.reset(seed=seed)[0] for seed in range(50)}
    assert 20 < len(seen) <= 50 and all(env.observation_space.contains(each) for each in seen)


def test_games_of_minatar_can_be_made_more_than_once() -> None:
    for _ in range(2):
        assert minatar("Breakout").reset(seed=0)[0].shape == (10, 10, 4)
