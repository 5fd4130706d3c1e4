"""Gymnasium's toy text: frozen lakes, a cliff and a taxi."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache, partial

from belated.agents import DelayedQLearning
from belated.environments import GymEnvironment
from belated.types import Algorithm
from belated_studies.exploration.peers import Game
from belated_studies.exploration.problems import BORROWED, Q_LEARNING, SEARCHED, Bar, Problem, borrowed, with_defaults
from belated_studies.exploration.section import artefact

CLIFF_HORIZON = 200
"""Gymnasium states no limit of steps for CliffWalking; this is the Taxi's."""
GAMES = {
    "lake-8": Game("FrozenLake8x8-v1", kwargs={"is_slippery": False}),
    "lake-8-slippery": Game("FrozenLake8x8-v1"),
    "lake-4-slippery": Game("FrozenLake-v1"),
    "cliff": Game("CliffWalking-v1", steps=CLIFF_HORIZON),
    "taxi": Game("Taxi-v4"),
}


@cache
def problems() -> tuple[Problem, ...]:
    """Return the problems with their bars."""
    lake, large = partial(GymEnvironment, "FrozenLake-v1"), partial(GymEnvironment, "FrozenLake8x8-v1")
    return (
        _problem("FrozenLake 8×8", "lake-8", partial(large, is_slippery=False), 400, 0.95, with_defaults()),
        _problem("FrozenLake 8×8, slippery", "lake-8-slippery", large, 1000, 0.86, with_defaults()),
        _problem("FrozenLake 4×4, slippery", "lake-4-slippery", lake, 600, 0.70, borrowed(), small=True),
        _problem(
            "CliffWalking",
            "cliff",
            partial(GymEnvironment, "CliffWalking-v1", horizon=CLIFF_HORIZON),
            300,
            -17.0,
            with_defaults(),
            small=True,
        ),
        _problem("Taxi", "taxi", partial(GymEnvironment, "Taxi-v4"), 1000, 7.0, {Q_LEARNING: DelayedQLearning()}),
    )


def _problem(
    name: str,
    label: str,
    make: partial[GymEnvironment],
    episodes: int,
    bar: float,
    others: Mapping[str, Algorithm],
    small: bool = False,
) -> Problem:
    return Problem(
        name=name,
        label=label,
        make=make,
        episodes=episodes,
        bars={"poisson-10": Bar(value=bar)},
        target=bar,
        others=others,
        borrowed=BORROWED,
        tuned=SEARCHED,
        small=small,
    )


ARTEFACT = artefact(
    "toy-text",
    4,
    "Toy text",
    [
        "Delayed-PSVI, UCBVI and ε-greedy keep a matrix of d² numbers for each of up to 200 steps, where d is the "
        "number of states times the number of actions, so they play only the smallest lake. Delayed-PSRL does not "
        "play Taxi, where each model that it draws has 1.5 million numbers. Solved: a mean return over 100 episodes "
        "that reaches the bar."
    ],
    problems,
    games=GAMES,
)
