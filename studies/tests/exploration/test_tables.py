"""The tables on which rules of exploration fail: what pays, and what is random."""

from __future__ import annotations

import numpy as np

from belated_studies.exploration.tables import dense, lock, lottery


def test_only_the_last_choice_of_a_lottery_is_random() -> None:
    transitions = lottery(5).world.transitions[0]
    random = np.argwhere(((transitions > 0) & (transitions < 1)).any(axis=2)).tolist()
    assert random == [[5, 1]]
    assert sorted(lottery(5).world.rewards[lottery(5).world.rewards > 0].tolist()) == [0.4, 1.0, 1.0]


def test_one_action_of_each_cell_of_a_lock_leads_on() -> None:
    world = lock(6, seed=3).world
    on = [int(world.transitions[0, cell, :, cell + 1].sum()) for cell in range(6)]
    assert on == [1] * 6
    assert world.rewards.sum() == 1.0
    strict = lock(6, seed=3, ends=True).world
    assert (strict.transitions[0, :6, :, 6].sum(axis=1) == [3, 3, 3, 3, 3, 4]).all()
    assert (world.transitions != lock(6, seed=4).world.transitions).any()


def test_dense_mdps_are_linear() -> None:
    assert max(dense(1, by_step=False).linearity()) < 1e-9
    assert dense(1, by_step=False).problem.dimension == 20
