"""RiverSwim: short and long, with and without delay."""

from __future__ import annotations

from functools import cache, partial

from belated.environments import RiverSwim
from belated_studies.exploration.problems import (
    BORROWED,
    NONE,
    POISSON,
    SEARCHED,
    Bar,
    Problem,
    borrowed,
    with_defaults,
)
from belated_studies.exploration.section import artefact
from belated_studies.winners import tuned

EPISODES, SHARE = 1000, 0.97


@cache
def problems() -> tuple[Problem, ...]:
    """Return the rivers: that of the paper, and one that is twice as long."""
    return _river(5, 20), _river(10, 50)


def _river(states: int, horizon: int) -> Problem:
    optimum = RiverSwim(states, horizon).optimal_value
    bar = Bar(value=SHARE * optimum)
    papers = (states, horizon) == (5, 20)  # the settings were searched for on this one
    others = borrowed() if not papers else {**tuned("riverswim"), **with_defaults()}
    return Problem(
        name=f"RiverSwim {states}, H = {horizon}",
        label=f"riverswim-{states}-h{horizon}",
        make=partial(RiverSwim, states, horizon),
        episodes=EPISODES,
        delays={**NONE, **POISSON},
        bars={"none": bar, "poisson-10": bar},
        target=SHARE * optimum,
        others=others,
        borrowed={} if papers else BORROWED,
        tuned=SEARCHED if not papers else tuple(tuned("riverswim")),
        small=papers,
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
