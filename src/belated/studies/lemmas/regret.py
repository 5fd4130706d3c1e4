"""Theorems 1 and 2 and the corollary on bandits, and an agent whose settings are practical."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from belated import theory
from belated.algorithms import DelayedLPSVI, DelayedPSLB, DelayedPSVI
from belated.reports.document import Chart, Section, Series
from belated.runner import Experiment
from belated.studies.lemmas.claims import Check, check, claims_table, untrue
from belated.studies.lemmas.tools import uniform_values
from belated.studies.lemmas.worlds import BANDIT, DELTA, EPISODES, LAWS, MEDIUM, PRACTICAL, Size, forewarned, shown
from belated.studies.pieces import final_regret
from belated.studies.study import Artefact, Played
from belated.types import Floats

LAW = LAWS["Poisson"]
LARGER, BANDITS = "regret", "regret-bandit"
REWARD_NOISE = 0.5
"""A variable within [0, 1] is 1/2-sub-Gaussian."""


def experiments(size: Size) -> list[Experiment]:
    """Return the theorems' settings, each where it is proved, and practical ones."""
    with forewarned():
        exact = DelayedPSVI.from_theory(MEDIUM.problem, EPISODES, DELTA)
        chains = DelayedLPSVI.from_theory(MEDIUM.problem, EPISODES, DELTA)
        bandit = DelayedPSLB.from_theory(BANDIT.problem, EPISODES, DELTA, reward_noise=REWARD_NOISE)
    return [
        Experiment(name=name, environments=world, agents=agents, delays=LAW, episodes=EPISODES, seeds=size.part(5))
        for name, world, agents in (
            (LARGER, MEDIUM, {"exact": exact, "chains": chains, "practical": PRACTICAL}),
            (BANDITS, BANDIT, {"exact": bandit}),
        )
    ]


def psvi_bound(episodes: int) -> float:
    """Return the bound of Theorem 1."""
    return theory.psvi_regret_bound(MEDIUM.dimension, MEDIUM.horizon, episodes, DELTA, LAW).total


def lpsvi_bound(episodes: int) -> float:
    """Return the bound of Theorem 2."""
    return theory.lpsvi_regret_bound(MEDIUM.dimension, MEDIUM.horizon, episodes, DELTA, LAW).total


def bandit_bound(episodes: int) -> float:
    """Return the bound of the corollary."""
    return theory.bandit_regret_bound(BANDIT.dimension, episodes, DELTA, LAW, REWARD_NOISE).total


class Theorem(NamedTuple):
    """A bound on regret and the agent that is held against it."""

    name: str
    experiment: str
    agent: str
    bound: Callable[[int], float]
    applies: bool = True


THEOREMS = (
    Theorem("Theorem 1", LARGER, "exact", psvi_bound),
    Theorem("Theorem 2", LARGER, "chains", lpsvi_bound),
    Theorem("Theorem 1", LARGER, "practical", psvi_bound, applies=False),
    Theorem("Bandit corollary", BANDITS, "exact", bandit_bound),
)


def _shown(played: Played[Size], experiment: str, agent: str) -> str:
    settings = played.experiments[experiment].agents[agent]
    assert isinstance(settings, DelayedPSVI | DelayedLPSVI | DelayedPSLB)
    return shown(settings)


def checks(played: Played[Size]) -> list[Check]:
    """Return the bounds beside the regret that was played."""
    return [
        check(
            one.name,
            "regret ≤ its bound",
            _shown(played, one.experiment, one.agent),
            bound=one.bound(EPISODES),
            runs=final_regret(played.results[one.experiment], agent=one.agent),
            promised=1 - DELTA,
            applies=one.applies,
        )
        for one in THEOREMS
    ]


def curves(played: Played[Size]) -> list[Series]:
    """Return regret, that of random actions, the largest there can be, and the bounds."""
    marks = np.unique(np.geomspace(1, EPISODES, 60).round().astype(np.int64))
    x = marks.astype(np.float64)
    aimless = MEDIUM.optimal_value - float(MEDIUM.start @ uniform_values(MEDIUM)[0])

    def regret(agent: str) -> Floats:
        mean: Floats = played.results[LARGER].regret(agent=agent).mean(axis=0)[marks - 1]
        return mean

    return [
        *(Series(name=f"regret: {_shown(played, LARGER, a)}", x=x, y=regret(a)) for a in ("exact", "practical")),
        Series(name="regret: uniformly random actions", x=x, y=aimless * x, dashed=True),
        Series(name="HK, the largest regret there can be", x=x, y=MEDIUM.horizon * x, dashed=True),
        Series(name="bound of Theorem 1", x=x, y=np.array([psvi_bound(int(k)) for k in marks]), dashed=True),
        Series(name="bound of Theorem 2", x=x, y=np.array([lpsvi_bound(int(k)) for k in marks]), dashed=True),
    ]


def section(played: Played[Size]) -> Section:
    """Return the claims, and regret below its bounds."""
    chart = Chart(
        id="lemmas-regret",
        title="Regret and its bounds",
        caption=f"Mean over seeds on the larger world. The settings of Theorem 1 are those for K = {EPISODES}.",
        x_label="episodes",
        y_label="cumulative regret",
        series=curves(played),
        log_x=True,
        log_y=True,
    )
    return Section(id="regret", title="Regret", tables=[claims_table("regret", checks(played))], charts=[chart])


def findings(played: Played[Size]) -> list[str]:
    """Return what did not hold, the regret at the end, and whether its bounds could fail."""
    found = checks(played)
    ends = "; ".join(f"{curve.name}: {curve.y[-1]:,.4g}" for curve in curves(played))
    empty = all(check.bound > MEDIUM.horizon * EPISODES for check in found)
    return [
        *untrue(found),
        f"After {EPISODES} episodes: {ends}.",
        *(["Each bound on regret exceeds the largest there can be, so that none of them could fail."] if empty else []),
    ]


ARTEFACT = Artefact[Size](id="regret", order=6, section=section, experiments=experiments, findings=findings)
