from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from belated import DelayedPSVI, DelayedQLearning, Feedback, MultiBatch, Poisson, RareSwitching, load_agent, save_agent
from belated.environments import GymEnvironment
from belated.environments._play import play
from belated.features import Tiles
from belated.runner import simulate
from belated.types import Algorithm

PSVI = DelayedPSVI(shared=True)


@pytest.mark.parametrize(
    "algorithm", [PSVI, DelayedQLearning(), RareSwitching(base=PSVI), MultiBatch(base=PSVI)], ids=lambda a: a.kind
)
def test_it_plays_as_if_that_map_were_given(algorithm: Algorithm) -> None:
    rows = [
        simulate(GymEnvironment("CartPole-v1", horizon=12, features=given), algorithm, Poisson(1), episodes=6, seed=1)
        for given in (None, Tiles())
    ]
    assert rows[0].equals(rows[1])


def test_it_is_saved_with_all_it_needs(tmp_path: Path) -> None:
    cart = GymEnvironment("CartPole-v1", horizon=12)
    agent: Any = PSVI.start(cart.problem)
    rng = np.random.default_rng(0)
    agent.learn([Feedback(0, play(cart, agent.plan(rng), seed=0, episode=0))])
    save_agent(tmp_path / "agent.npz", agent, rng)
    copy, copied_rng = load_agent(tmp_path / "agent.npz")
    assert copied_rng is not None
    for episode in (1, 2):
        one, other = (
            play(cart, each.plan(r), seed=0, episode=episode) for each, r in ((agent, rng), (copy, copied_rng))
        )
        assert one.actions.tolist() == other.actions.tolist()
