"""The paper's problems: its synthetic MDP under its three delays, and its RiverSwim."""

from __future__ import annotations

from functools import cache

from belated.delays import Poisson
from belated.environments import RiverSwim
from belated_studies.exploration.problems import Bar, Problem, searched
from belated_studies.exploration.published import BEFORE
from belated_studies.exploration.section import artefact
from belated_studies.paper.setting import DELAYS, synthetic

EPISODES = 5000
SOURCE = "the best of the searched agents; the earlier rule of AutoPSVI"


def best(label: str, delay: str) -> Bar:
    return Bar(regret=1.0, before=BEFORE[label, delay], source=SOURCE)


@cache
def problems() -> tuple[Problem, ...]:
    """Return both; settings were searched for on the synthetic MDP with 50 actions, and on this RiverSwim."""
    on_synthetic = searched("synthetic", without=["psvi-0.3", "psvi-0.2", "lpsvi-plain"])
    return (
        Problem(
            name="synthetic MDP, 20 actions",
            label="paper-synthetic",
            make=lambda: synthetic(40),
            episodes=EPISODES,
            delays=DELAYS,
            bars={delay: best("paper-synthetic", delay) for delay in DELAYS},
            small=True,
            **on_synthetic,
        ),
        Problem(
            name="RiverSwim",
            label="paper-riverswim",
            make=RiverSwim,
            episodes=EPISODES,
            delays={"poisson-5": Poisson(5)},
            bars={"poisson-5": best("paper-riverswim", "poisson-5")},
            small=True,
            **searched("riverswim", "rivers"),
        ),
    )


ARTEFACT = artefact(
    "paper-problems",
    6,
    "The paper's problems",
    [
        "The bar is the lowest regret of the searched agents. On RiverSwim Delayed-PSVI and UCBVI appear twice: with a "
        "regression for each step, searched on this river, and with one for all steps, searched on another."
    ],
    problems,
    regret=True,
)
