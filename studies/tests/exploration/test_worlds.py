"""Environments of other people: numbers for observations, and choices for continuous actions."""

from __future__ import annotations

import numpy as np

from belated_studies.exploration.worlds import blackjack_table, pendulum, random_lake


def test_equal_observations_have_equal_numbers() -> None:
    env = blackjack_table()
    seen = {env.unwrapped._get_obs(): number for number, _ in (env.reset(seed=seed) for seed in range(200))}
    assert all(env.observation(np.array(hand)) == number for hand, number in seen.items())
    assert len(set(seen.values())) == len(seen) > 50


def test_a_choice_is_a_torque() -> None:
    env = pendulum()
    assert [float(env.action(choice)[0]) for choice in range(5)] == [-2.0, -1.0, 0.0, 1.0, 2.0]


def test_a_drawn_lake_is_the_same_for_the_same_seed() -> None:
    lakes = [random_lake(6, seed).unwrapped.desc.tobytes() for seed in (7, 7, 8)]
    assert lakes[0] == lakes[1] != lakes[2]
