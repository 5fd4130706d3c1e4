"""RiverSwim: short and long, with and without delay."""

from __future__ import annotations

from functools import cache, partial

from belated.environments import RiverSwim
from belated_studies.exploration.problems import NONE, POISSON, Bar, Problem, searched
from belated_studies.exploration.section import artefact

EPISODES, SHARE = 1000, 0.97


@cache
def problems() -> tuple[Problem, ...]:
    """Return the rivers: that of the paper, and one that is twice as long."""
    return _river(5, 20), _river(10, 50)


def _river(states: int, horizon: int) -> Problem:
    optimum = RiverSwim(states, horizon).optimal_value
    bar = Bar(value=SHARE * optimum, source=f"{SHARE:.0%} of the optimum".replace("%", " %"))
    return Problem(
        name=f"RiverSwim {states}, H = {horizon}",
        label=f"riverswim-{states}-h{horizon}",
        make=partial(RiverSwim, states, horizon),
        episodes=EPISODES,
        delays={**NONE, **POISSON},
        bars={"none": bar, "poisson-10": bar},
        target=SHARE * optimum,
        small=states == 5,
        **searched("rivers"),
    )


ARTEFACT = artefact(
    "riverswim",
    3,
    "RiverSwim",
    [
        "Swimming against the current pays, but only much later. Returns are sums of sampled rewards, and the optimum "
        "is an expectation: a lucky agent may end above it."
    ],
    problems,
)
