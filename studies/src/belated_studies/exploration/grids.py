"""Grids of MiniGrid, seen whole or by a view of 7×7; they need the package minigrid, and are left out without it."""

from __future__ import annotations

from functools import cache, partial
from typing import Any

from belated.environments import GymEnvironment
from belated_studies.exploration.problems import Bar, Problem, by_number
from belated_studies.exploration.section import artefact
from belated_studies.exploration.worlds import grid, has, left_out

EMPTY: dict[str, Any] = {"world": "MiniGrid-Empty-5x5-v0", "horizon": 100}
DOOR: dict[str, Any] = {"world": "MiniGrid-DoorKey-5x5-v0", "horizon": 250}


@cache
def problems() -> tuple[Problem, ...]:
    """Return the grids."""
    if not has("minigrid"):
        return ()
    return (
        _problem("Empty 5×5, seen whole", "empty", 300, 0.90, **EMPTY),
        _problem("Empty 5×5, seen whole, paying 1", "empty-1", 300, 0.95, **EMPTY, constant=True),
        _problem("Empty 5×5, 7×7 view", "empty-view", 300, 0.80, **EMPTY, view=True),
        _problem("DoorKey 5×5, seen whole", "door", 500, 0.80, **DOOR),
        _problem("DoorKey 5×5, seen whole, paying 1", "door-1", 500, 0.80, **DOOR, constant=True),
    )


def _problem(name: str, label: str, episodes: int, bar: float, **settings: Any) -> Problem:
    make = partial(GymEnvironment, grid, reward_range=(0.0, 1.0), **settings)
    return Problem(
        name=name,
        label=label,
        make=make,
        episodes=episodes,
        bars={"poisson-10": Bar(value=bar)},
        **by_number(partial(make, table=True), "grids"),
    )


ARTEFACT = artefact(
    "grids",
    11,
    "MiniGrid",
    [
        "Played unchanged, with no settings. Their observations repeat, so AutoPSVI plays them as tables. The goal "
        "pays less the later it is reached; the rows in which it always pays 1 show the effect of the features "
        "alone. Q-learning is given a table of the observations.",
        *left_out("minigrid"),
    ],
    problems,
)
