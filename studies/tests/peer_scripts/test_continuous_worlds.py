from __future__ import annotations

import math

import gymnasium
import numpy as np
import pytest

from belated_studies.peer_scripts.continuous_worlds import Drone, PointMass


@pytest.mark.parametrize("kind", [PointMass, Drone])
def test_bounds_are_loose_and_seeds_decide(kind: type[gymnasium.Env[np.ndarray, int]]) -> None:
    seen = []
    for _ in range(2):
        env = kind()
        observation, _ = env.reset(seed=3)
        seen.append([observation])
        for step in range(30):
            observation, reward, over, *_ = env.step(step % 4)
            assert observation in env.observation_space and 0.0 <= float(reward) <= 1.0
            seen[-1].append(observation)
            if over:
                break
    np.testing.assert_array_equal(seen[0], seen[1])
    assert np.abs(seen[0]).max() <= 2.5 and gymnasium.make(f"{kind.__name__}-v0").spec is not None


def test_a_force_moves_the_mass_along_its_axis() -> None:
    env = PointMass()
    env.reset(seed=0)
    start = env.state.copy()
    env.step(2)
    assert env.state[4] == pytest.approx(0.2, abs=0.1) and abs(env.state[3]) < 0.1
    assert env.state[1] == pytest.approx(start[1] + 0.2 * env.state[4])


def test_one_rotor_holds_the_drone_and_none_drops_it() -> None:
    env = Drone()
    env.reset(seed=0)
    env.state = np.zeros(6)
    *_, climb, spin = env.step(1)[0]
    assert abs(climb) < 0.1 and spin == pytest.approx(0.25, abs=0.1)
    env.state = np.zeros(6)
    observation, reward, *_ = env.step(0)
    assert observation[4] == pytest.approx(-0.2, abs=0.1)
    x, y, angle = env.state[:3]
    assert reward == pytest.approx(math.exp(-2 * (x * x + y * y) - angle * angle))
