"""Gymnasium's toy text: slippery lakes, a cliff and a taxi."""

from __future__ import annotations

from functools import cache, partial

from belated.environments import GymEnvironment
from belated_studies.exploration.problems import Bar, Problem, searched
from belated_studies.exploration.section import artefact

CLIFF_HORIZON = 200
"""Gymnasium states no limit of steps for CliffWalking; this is the Taxi's."""


@cache
def problems() -> tuple[Problem, ...]:
    """Return the problems with their bars."""
    lake, large = partial(GymEnvironment, "FrozenLake-v1"), partial(GymEnvironment, "FrozenLake8x8-v1")
    cliff = partial(GymEnvironment, "CliffWalking-v1", horizon=CLIFF_HORIZON)
    return (
        _problem("FrozenLake 8×8, slippery", "lake-8-slippery", large, 1000, 0.86, "slippery-lakes"),
        _problem("FrozenLake 4×4, slippery", "lake-4-slippery", lake, 600, 0.70, "slippery-lakes", small=True),
        _problem("CliffWalking", "cliff", cliff, 300, -17.0, "cliff", small=True),
        _problem("Taxi", "taxi", partial(GymEnvironment, "Taxi-v4"), 1000, 7.0, "taxi"),
    )


def _problem(
    name: str,
    label: str,
    make: partial[GymEnvironment],
    episodes: int,
    bar: float,
    search: str,
    small: bool = False,
) -> Problem:
    return Problem(
        name=name,
        label=label,
        make=make,
        episodes=episodes,
        bars={"poisson-10": Bar(value=bar)},
        target=bar,
        small=small,
        **searched(search),
    )


ARTEFACT = artefact(
    "toy-text",
    4,
    "Toy text",
    [
        "Of the agents beside AutoPSVI, only Q-learning plays Taxi, where a regression has 3,000 features and a model "
        "1.5 million numbers. LSVI-PHE plays only the small lakes, because each of its draws solves a linear system. "
        "Solved: a mean return over 100 episodes that reaches the bar."
    ],
    problems,
)
