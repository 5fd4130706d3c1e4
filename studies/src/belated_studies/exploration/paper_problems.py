"""The paper's problems: its synthetic MDP under its three delays, and its RiverSwim."""

from __future__ import annotations

from functools import cache

from belated.delays import Poisson
from belated.environments import RiverSwim
from belated_studies.exploration.problems import Bar, Problem, with_defaults
from belated_studies.exploration.section import artefact
from belated_studies.paper.agents import distinct
from belated_studies.paper.setting import DELAYS, synthetic
from belated_studies.winners import tuned

EPISODES = 5000
BEST = Bar(regret=1.0)


@cache
def problems() -> tuple[Problem, ...]:
    """Return both; settings were searched for on the synthetic MDP with 50 actions, and on this RiverSwim."""
    best = tuned("synthetic")
    on_synthetic = {name: best[name] for name in ("psvi-0.1", "lpsvi", "ucbvi", "epsilon-greedy")}
    on_river = distinct(tuned("riverswim"))
    return (
        Problem(
            name="synthetic MDP, 20 actions",
            label="paper-synthetic",
            make=lambda: synthetic(40),
            episodes=EPISODES,
            delays=DELAYS,
            bars=dict.fromkeys(DELAYS, BEST),
            others={**on_synthetic, **with_defaults()},
            borrowed=dict.fromkeys(on_synthetic, "the same MDP with 50 actions under Poisson 50"),
            tuned=tuple(on_synthetic),
            small=True,
        ),
        Problem(
            name="RiverSwim",
            label="paper-riverswim",
            make=RiverSwim,
            episodes=EPISODES,
            delays={"poisson-5": Poisson(5)},
            bars={"poisson-5": BEST},
            others={**on_river, **with_defaults()},
            tuned=tuple(on_river),
            small=True,
        ),
    )


ARTEFACT = artefact(
    "paper-problems",
    6,
    "The paper's problems",
    [
        "The bar is the least regret of the tuned agents. Delayed-PSRL and Q-learning, which were not tuned, are "
        "shown but do not set the bar."
    ],
    problems,
    regret=True,
)
