"""ε-greedy acts at random as often as it says."""

from __future__ import annotations

import numpy as np
import pytest
from side_by_side import fed

from belated.agents import (
    EpsilonGreedy,
    Greedy,
)
from belated.environments import RandomLinearMDP


def test_epsilon_greedy_takes_random_actions_that_often() -> None:
    mdp = RandomLinearMDP(states=6, actions=4, dimension=4, horizon=5)
    greedy, epsilon = fed(mdp, Greedy(), EpsilonGreedy(epsilon=0.4))
    wanted, rng = greedy.plan(np.random.default_rng(0)).actions, np.random.default_rng(1)
    plans = np.array([epsilon.plan(rng).actions for _ in range(2000)])
    differ = (plans != wanted).mean()
    chance = 0.4 * 3 / 4  # one of the four random actions is the greedy one
    assert differ == pytest.approx(chance, abs=5 * np.sqrt(chance * (1 - chance) / plans.size))
    shares = np.bincount(plans[plans != wanted], minlength=4) / (plans != wanted).sum()
    away = np.array([(wanted != action).sum() for action in range(4)]) / (3 * wanted.size)
    np.testing.assert_allclose(shares, away, atol=0.02)
