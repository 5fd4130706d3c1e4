"""Environments of other people, played without any setting: LunarLander, MiniGrid, Blackjack, a pendulum.

LunarLander needs Box2D and the grids need the package minigrid; what is not installed is left out, and said.
"""

from __future__ import annotations

from functools import cache, partial
from typing import Any

from belated.agents import DelayedQLearning
from belated.environments import GymEnvironment
from belated_studies.exploration.peers import Game
from belated_studies.exploration.problems import Q_LEARNING, Bar, Problem
from belated_studies.exploration.section import artefact
from belated_studies.exploration.worlds import blackjack_table, grid, has, pendulum
from belated_studies.winners import tuned

NEEDED = {"Box2D": "LunarLander", "minigrid": "the grids of MiniGrid"}
"""Modules that are not everywhere, and what needs them."""
LANDER = Bar(not_below_dqn=True, milliseconds=20.0, source="DQN on the same late episodes; the time: set before")
HARDER = 0.3
"""The part of the seeds that play what takes minutes a run: those of the peers."""


@cache
def problems() -> tuple[Problem, ...]:
    """Return the problems whose packages are installed."""
    empty, door = "MiniGrid-Empty-5x5-v0", "MiniGrid-DoorKey-5x5-v0"
    grids = (
        _grid("MiniGrid Empty 5×5, seen whole", "empty", 300, 0.90, name=empty, horizon=100),
        _grid("the same, paying 1", "empty-1", 300, 0.95, name=empty, horizon=100, constant=True),
        _grid("MiniGrid Empty 5×5, 7×7 view", "empty-view", 300, 0.80, name=empty, horizon=100, view=True),
        _grid("MiniGrid DoorKey 5×5, seen whole", "door", 500, 0.80, name=door, horizon=250),
        _grid("the same, paying 1", "door-1", 500, 0.80, name=door, horizon=250, constant=True),
    )
    lander, blackjack = partial(GymEnvironment, "LunarLander-v3"), partial(GymEnvironment, "Blackjack-v1", horizon=20)
    table = partial(GymEnvironment, blackjack_table, horizon=20, reward_range=(-1.0, 1.0))
    swung = partial(GymEnvironment, pendulum, horizon=200)
    tiles = {"others": {Q_LEARNING: DelayedQLearning()}}
    return (
        *(grids if has("minigrid") else ()),
        *((_problem("LunarLander", "lunar", lander, 600, LANDER, share=HARDER, **tiles),) * has("Box2D")),
        _problem("Blackjack", "blackjack", blackjack, 2000, None, small=True, **_by_number(table, "blackjack")),
        _problem("Pendulum, five torques", "pendulum", swung, 250, None, share=HARDER, **tiles),
    )


def _grid(called: str, label: str, episodes: int, bar: float, **settings: Any) -> Problem:
    make = partial(GymEnvironment, grid, reward_range=(0.0, 1.0), **settings)
    return _problem(called, label, make, episodes, Bar(value=bar), **_by_number(partial(make, table=True), "grids"))


def _by_number(table: partial[GymEnvironment], search: str) -> dict[str, Any]:
    """Return Q-learning in a table of observations, with the settings of a search."""
    return {"through": {Q_LEARNING: (table, tuned(search)[Q_LEARNING])}, "searches": {Q_LEARNING: search}, "others": {}}


def _problem(
    name: str, label: str, make: partial[GymEnvironment], episodes: int, bar: Bar | None, **more: Any
) -> Problem:
    bars = {} if bar is None else {"poisson-10": bar}
    return Problem(name=name, label=label, make=make, episodes=episodes, bars=bars, **more)


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
        "later it is reached, and rows that pay 1 show what comes of the features alone. Q-learning is given a table "
        "of the observations of grids and of Blackjack, and tiles elsewhere.",
        *([f"Left out: {'; '.join(_LEFT_OUT)}."] if _LEFT_OUT else []),
    ],
    problems,
    games=GAMES,
)
