"""Ten more problems, chosen before any of them was played, played once, and told as they came out."""

from __future__ import annotations

from functools import cache, partial
from typing import Any

from belated.agents import DelayedQLearning, RandomPolicy
from belated.environments import GymEnvironment
from belated_studies.exploration.problems import Q_LEARNING, Problem
from belated_studies.exploration.section import artefact
from belated_studies.exploration.worlds import continuous_mountain_car, grid, has, highway, minatar, random_lake

SHARE = 0.3


@cache
def problems() -> tuple[Problem, ...]:
    """Return those whose packages are installed."""
    lake = partial(GymEnvironment, random_lake, size=6, seed=7, horizon=100, reward_range=(0.0, 1.0))
    cliff = partial(GymEnvironment, "CliffWalking-v1", is_slippery=True, horizon=200)
    car = partial(GymEnvironment, continuous_mountain_car, horizon=300)
    return (
        _problem("CliffWalking, slippery", "more-cliff", cliff, 500, small=True),
        _problem("a drawn lake of 6×6, slippery", "more-lake", lake, 1000),
        _problem("MountainCarContinuous, three forces", "more-car", car, 200),
        *(
            (
                _grid("MiniGrid LavaGap 5×5", "more-lava", "MiniGrid-LavaGapS5-v0", 100),
                _grid("MiniGrid SimpleCrossing 9×9", "more-crossing", "MiniGrid-SimpleCrossingS9N1-v0", 324),
                _grid("MiniGrid Dynamic Obstacles 5×5", "more-obstacles", "MiniGrid-Dynamic-Obstacles-5x5-v0", 100),
                _grid("MiniGrid Unlock", "more-unlock", "MiniGrid-Unlock-v0", 288),
            )
            if has("minigrid")
            else ()
        ),
        *((_game("Breakout", 300), _game("Freeway", 40)) if has("minatar") else ()),
        *(
            (_problem("highway-env, highway-fast", "more-highway", partial(GymEnvironment, highway, horizon=30), 100),)
            * has("highway_env")
        ),
    )


def _grid(called: str, label: str, name: str, horizon: int) -> Problem:
    low = -1.0 if "Obstacles" in name else 0.0
    return _problem(
        called, label, partial(GymEnvironment, grid, world=name, horizon=horizon, reward_range=(low, 1.0)), 300
    )


def _game(game: str, episodes: int) -> Problem:
    make = partial(GymEnvironment, minatar, game=game, horizon=500, reward_range=(0.0, 1.0))
    return _problem(f"MinAtar {game}", f"more-{game.lower()}", make, episodes)


def _problem(name: str, label: str, make: partial[GymEnvironment], episodes: int, **more: Any) -> Problem:
    others = {Q_LEARNING: DelayedQLearning(), "random": RandomPolicy()}
    return Problem(name=name, label=label, make=make, episodes=episodes, bars={}, others=others, share=SHARE, **more)


ARTEFACT = artefact(
    "more",
    17,
    "Ten more problems",
    [
        "These problems were chosen before any of them was played, and played once; nothing was changed afterwards. "
        "Beside AutoPSVI play Q-learning with its defaults, on tiles or on the raw numbers, and a policy with random "
        "actions."
    ],
    problems,
    curves=False,
)
