"""Two arms and lotteries: how often a run ends with the worse choice."""

from __future__ import annotations

from functools import cache, partial

from belated.environments import FiniteMDP
from belated_studies.exploration.problems import Bar, Problem, searched
from belated_studies.exploration.section import artefact
from belated_studies.exploration.tables import arms, lottery

LENGTHS = (5, 20)
SLOW = ("phe", "psrl", "epsilon-greedy", "q-learning")
"""Agents that do not play the lotteries: hundreds of runs take long."""


@cache
def problems() -> tuple[Problem, ...]:
    """Return the arms and the lotteries, each with forty times as many seeds as other problems."""
    bandit = _problem("two arms, .5 and .6", "arms", partial(arms, 0.5, 0.6), 0.005, "arms")
    lotteries = (
        _problem(f"lottery after {length} sure steps", f"lottery-{length}", partial(lottery, length), 0.01, "lotteries")
        for length in LENGTHS
    )
    return bandit, *lotteries


def _problem(name: str, label: str, make: partial[FiniteMDP], most: float, search: str) -> Problem:
    return Problem(
        name=name,
        label=label,
        make=make,
        episodes=4000,
        bars={"poisson-10": Bar(lost=most)},
        share=40,
        every=20,
        small=True,
        **searched(search, without=SLOW if search == "lotteries" else ["phe"]),
    )


ARTEFACT = artefact(
    "lost",
    14,
    "Two arms and lotteries",
    [
        "A lottery is a deterministic corridor that ends with a choice: 0.4 for certain, or 1 with probability 0.6. A "
        "run is lost if it makes the worse choice in most of the last fifth of its episodes. Hundreds of runs take "
        "long, so LSVI-PHE is left out, and PSRL, ε-greedy and Q-learning play only the arms."
    ],
    problems,
    regret=True,
    curves=False,
)
