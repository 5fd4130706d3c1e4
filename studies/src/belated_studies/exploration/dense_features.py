"""Random linear MDPs with twenty dense features."""

from __future__ import annotations

from functools import cache, partial

from belated_studies.exploration.problems import Bar, Problem, searched
from belated_studies.exploration.section import artefact
from belated_studies.exploration.tables import dense

SEEDS = (1, 2)


@cache
def problems() -> tuple[Problem, ...]:
    """Return two MDPs whose tables are the same at all steps, and two in which every step has its own."""
    return tuple(
        Problem(
            name=f"dense MDP {seed}, {'its own tables at each step' if by_step else 'the same tables at all steps'}",
            label=f"dense-{seed}{'-by-step' if by_step else ''}",
            make=partial(dense, seed, by_step),
            episodes=2000,
            bars={"poisson-10": Bar(regret=1.2)},
            small=seed == SEEDS[0],
            **searched("dense-by-step" if by_step else "dense"),
        )
        for by_step in (False, True)
        for seed in SEEDS
    )


ARTEFACT = artefact(
    "dense",
    16,
    "Dense features",
    [
        "Twenty states, five actions, eight steps; φ(s, a) is a point of a simplex with 20 corners, and rewards are 0 "
        "or 1."
    ],
    problems,
    regret=True,
)
