"""Classic control: what is played, and the car that is paid at the goal alone."""

from __future__ import annotations

import pytest

from belated_studies.exploration.classic_control import GAMES, problems, sparse_mountain_car
from belated_studies.exploration.peers import ZOO
from belated_studies.peer_scripts.use_stable_baselines3 import make_environment


def test_the_car_is_paid_at_the_goal_alone() -> None:
    car = sparse_mountain_car()
    observation, _ = car.reset(seed=0)
    total, steps, terminated = 0.0, 0, False
    while not terminated:  # pushing in the direction of movement climbs the hill
        assert total == 0.0
        observation, reward, terminated, truncated, _ = car.step(2 if observation[1] >= 0 else 0)
        assert not truncated
        total, steps = total + reward, steps + 1
    assert total == pytest.approx(1.0)
    assert steps > 50


def test_episodes_bars_and_horizons() -> None:
    found = {each.label: (each.episodes, each.bars["poisson-10"].value, each.world.horizon) for each in problems()}
    assert found == {
        "car": (500, -112.0, 200),
        "car-sparse": (400, 0.85, 200),
        "cart-200": (300, 195.0, 200),
        "cart-500": (500, 475.0, 500),
        "acrobot": (500, -115.0, 500),
    }
    assert {each.world.reward_range for each in problems() if each.label == "car-sparse"} == {(0.0, 1.0)}


def test_peers_play_the_same_games_with_published_settings() -> None:
    played = [each for each in problems() if each.label in GAMES]
    assert len(played) == len(GAMES) == 4
    for problem in played:
        game = GAMES[problem.label]
        assert all((agent, game.id) in ZOO for agent in ("dqn", "ppo"))
        theirs = make_environment(vars(game))
        theirs.reset(seed=3)
        paid, over = [], False
        while not over:
            _, reward, terminated, truncated, _ = theirs.step(0)
            paid.append(reward)
            over = terminated or truncated
        low, high = problem.world.reward_range
        assert low <= min(paid) <= max(paid) <= high
        assert len(paid) <= problem.world.horizon == theirs.spec.max_episode_steps
