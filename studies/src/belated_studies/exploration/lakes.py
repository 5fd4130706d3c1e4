"""Frozen lakes that are not slippery: whether the goal is reached, and in how many steps."""

from __future__ import annotations

from functools import cache, partial

from belated.environments import GymEnvironment
from belated_studies.exploration.problems import Bar, Problem, searched
from belated_studies.exploration.section import artefact

SLOW = ("phe", "ucbvi", "epsilon-greedy")
"""Agents that play only the small lake."""


@cache
def problems() -> tuple[Problem, ...]:
    """Return both lakes."""
    return (
        _lake("FrozenLake 4×4", "lake-4", "FrozenLake-v1", 200, 8.0, small=True),
        _lake("FrozenLake 8×8", "lake-8", "FrozenLake8x8-v1", 400, 18.0),
    )


def _lake(name: str, label: str, world: str, episodes: int, steps: float, small: bool = False) -> Problem:
    return Problem(
        name=name,
        label=label,
        make=partial(GymEnvironment, world, is_slippery=False),
        episodes=episodes,
        bars={"poisson-10": Bar(value=0.98, steps=steps)},
        target=0.98,
        small=small,
        **searched("lakes", without=[] if small else SLOW),
    )


ARTEFACT = artefact(
    "lakes",
    9,
    "Lakes that are not slippery",
    [
        "The goal pays 1 whenever it is reached; the shortest way takes 6 steps on the small lake and 14 on the large "
        "one. LSVI-PHE, UCBVI and ε-greedy play only the small lake. Solved: a mean return over 100 episodes that "
        "reaches the bar."
    ],
    problems,
)
