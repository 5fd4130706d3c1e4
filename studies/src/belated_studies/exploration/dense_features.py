"""Random linear MDPs with twenty dense features."""

from __future__ import annotations

from functools import cache, partial

from belated_studies.exploration.problems import Bar, Problem, searched
from belated_studies.exploration.section import artefact
from belated_studies.exploration.tables import dense


@cache
def problems() -> tuple[Problem, ...]:
    """Return two MDPs whose tables are the same at all steps, and two in which every step has its own."""
    return tuple(_problem(by_step, sure) for by_step in (False, True) for sure in (True, False))


def _problem(by_step: bool, sure: bool) -> Problem:
    kind = f"dense{'-by-step' if by_step else ''}{'-sure' if sure else ''}"
    tables = "its own tables at each step" if by_step else "the same tables at all steps"
    return Problem(
        name=f"dense MDP, {tables}, {'sure rewards' if sure else 'rewards of 0 or 1'}",
        label=kind,
        make=partial(dense, 1, by_step, sure),
        episodes=2000,
        bars={"poisson-10": Bar(regret=1.2)},
        small=sure,
        **searched(kind),
    )


ARTEFACT = artefact(
    "dense",
    16,
    "Dense features",
    [
        "Twenty states, five actions, eight steps; φ(s, a) is a point of a simplex with 20 corners. Transitions are "
        "random."
    ],
    problems,
    regret=True,
)
