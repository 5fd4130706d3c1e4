"""Environments of other people, played without any setting: LunarLander, MiniGrid, Blackjack, a pendulum.

LunarLander needs Box2D and the grids need the package minigrid; what is not installed is left out, and said.
"""

from __future__ import annotations

from functools import cache, partial
from importlib import import_module
from importlib.util import find_spec
from typing import Any

import numpy as np

from belated.agents import DelayedQLearning
from belated.environments import GymEnvironment
from belated.environments._gym_bridge import load_gymnasium
from belated_studies.exploration.peers import Game
from belated_studies.exploration.problems import Q_LEARNING, Bar, Problem
from belated_studies.exploration.section import artefact

NEEDED = {"Box2D": "LunarLander", "minigrid": "the grids of MiniGrid"}
"""Modules that are not everywhere, and what needs them."""


def has(module: str) -> bool:
    return find_spec(module) is not None


def grid(name: str, view: bool = False, constant: bool = False) -> Any:
    """Return a grid of MiniGrid, seen whole or by the 7×7 `view`, whose goal pays 1 at any time if `constant`."""
    gymnasium = load_gymnasium()
    wrappers = import_module("minigrid.wrappers")

    class PaysOne(gymnasium.Wrapper):  # type: ignore[misc,name-defined]
        """Pays 1 where the environment pays anything."""

        def step(self, action: Any) -> Any:
            observation, reward, terminated, truncated, info = self.env.step(action)
            return observation, float(reward > 0), terminated, truncated, info

    made = gymnasium.make(name)
    shown = wrappers.ImgObsWrapper(made if view else wrappers.FullyObsWrapper(made))
    return PaysOne(shown) if constant else shown


def pendulum() -> Any:
    """Return Pendulum-v1 with five torques."""
    gymnasium = load_gymnasium()

    class FiveTorques(gymnasium.ActionWrapper):  # type: ignore[misc,name-defined]
        """Chooses among -2, -1, 0, 1 and 2."""

        def __init__(self, env: Any) -> None:
            super().__init__(env)
            self.action_space = gymnasium.spaces.Discrete(5)

        def action(self, action: Any) -> Any:
            return np.array([action - 2.0], np.float32)

    return FiveTorques(gymnasium.make("Pendulum-v1"))


def _grid(name: str, horizon: int, **settings: Any) -> partial[GymEnvironment]:
    return partial(GymEnvironment, grid, name=name, horizon=horizon, reward_range=(0.0, 1.0), **settings)


@cache
def problems() -> tuple[Problem, ...]:
    """Return the problems whose packages are installed."""
    empty, door = "MiniGrid-Empty-5x5-v0", "MiniGrid-DoorKey-5x5-v0"
    grids = (
        _problem("MiniGrid Empty 5×5, seen whole", "empty", _grid(empty, 100), 300, 0.90),
        _problem("the same, paying 1", "empty-1", _grid(empty, 100, constant=True), 300, 0.95),
        _problem("MiniGrid Empty 5×5, 7×7 view", "empty-view", _grid(empty, 100, view=True), 300, 0.80),
        _problem("MiniGrid DoorKey 5×5, seen whole", "door", _grid(door, 250), 500, 0.80),
        _problem("the same, paying 1", "door-1", _grid(door, 250, constant=True), 500, 0.80),
    )
    return (
        *(grids if has("minigrid") else ()),
        *((_problem("LunarLander", "lunar", partial(GymEnvironment, "LunarLander-v3"), 600, None),) * has("Box2D")),
        _problem("Blackjack", "blackjack", partial(GymEnvironment, "Blackjack-v1", horizon=20), 2000, None),
        _problem("Pendulum, five torques", "pendulum", partial(GymEnvironment, pendulum, horizon=200), 250, None),
    )


def _problem(name: str, label: str, make: partial[GymEnvironment], episodes: int, bar: float | None) -> Problem:
    return Problem(
        name=name,
        label=label,
        make=make,
        episodes=episodes,
        bars={} if bar is None else {"poisson-10": Bar(value=bar)},
        others={Q_LEARNING: DelayedQLearning()},
    )


GAMES = {"lunar": Game("LunarLander-v3")} if has("Box2D") else {}
"""What plain Gymnasium has, with observations that networks take."""
_LEFT_OUT = [f"{what} (no module {module})" for module, what in NEEDED.items() if not has(module)]

ARTEFACT = artefact(
    "strangers",
    11,
    "Environments of other people",
    [
        "Played as they are, with nothing set, and with nothing chosen on them: the features are what AutoPSVI makes "
        "of what arrives. Observations of MiniGrid repeat, so it plays them as tables; there the goal pays less the "
        "later it is reached, and rows that pay 1 show what comes of the features alone.",
        *([f"Left out: {'; '.join(_LEFT_OUT)}."] if _LEFT_OUT else []),
    ],
    problems,
    games=GAMES,
)
