"""Combination locks: one right action in each cell, and any other leads back to the first."""

from __future__ import annotations

from functools import cache, partial

from belated_studies.exploration.problems import Bar, Problem, searched
from belated_studies.exploration.section import artefact
from belated_studies.exploration.tables import lock

LENGTHS = (10, 15)


@cache
def problems() -> tuple[Problem, ...]:
    """Return the locks."""
    return tuple(
        Problem(
            name=f"lock of {length}{', ends' if ends else ''}",
            label=f"lock-{length}{'-ends' if ends else ''}",
            make=partial(lock, length, seed=length, ends=ends),
            episodes=1000,
            bars={"poisson-10": Bar(regret=1.2)},
            target=0.9,
            small=True,
            **searched("strict-locks" if ends else "locks"),
        )
        for ends in (False, True)
        for length in LENGTHS
    )


ARTEFACT = artefact(
    "locks",
    15,
    "Combination locks",
    [
        "Four actions in each cell, of which one leads to the next cell; the last cell pays 1. A wrong action leads "
        "back to the first cell, or, in a lock “that ends”, ends the episode. The problem is deterministic; only the "
        "agents are random."
    ],
    problems,
    regret=True,
)
