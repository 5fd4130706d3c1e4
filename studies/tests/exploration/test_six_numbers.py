from __future__ import annotations

from belated_studies.exploration.peers import BY_HAND, DQN, PPO
from belated_studies.exploration.six_numbers import GAMES, problems


def test_episodes_bars_and_horizons() -> None:
    found = {each.label: (each.episodes, each.bars["poisson-10"].of_dqn, each.world.horizon) for each in problems()}
    assert found == {"point-mass": (250, 0.7, 40), "drone": (250, 0.7, 60)}
    assert all(each.world.features.size == 6 for each in problems())


def test_dqn_has_settings_chosen_by_hand() -> None:
    for problem in problems():
        game = GAMES[problem.label]
        assert game.settings(DQN, problem) == (250 * problem.world.horizon, BY_HAND)
        assert game.source(DQN) == "settings chosen by hand"
        assert game.settings(PPO, problem)[1] == {} and "defaults" in game.source(PPO)
