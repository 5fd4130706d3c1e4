"""Theorems 1 and 2 and the corollary on bandits, and an agent whose settings are practical."""

from __future__ import annotations

import numpy as np

from belated import theory
from belated.agents import DelayedLPSVI, DelayedPSLB, DelayedPSVI
from belated.runner import Experiment
from belated_studies.cells_and_curves import final_regret
from belated_studies.lemmas.claims import Check, check, claims_table, untrue
from belated_studies.lemmas.tools import uniform_values
from belated_studies.lemmas.worlds import BANDIT, DELAYS, DELTA, EPISODES, MEDIUM, PRACTICAL, Size, forewarned, shown
from belated_studies.reports.document import Chart, Section, Series
from belated_studies.study import Artefact, Played

DELAY = DELAYS["Poisson"]
REWARD_NOISE = 0.5
"""A variable within [0, 1] is 1/2-sub-Gaussian."""
FIRST, SECOND, COROLLARY = "Theorem 1", "Theorem 2", "Bandit corollary"
LARGER, BANDITS = "regret", "regret-bandit"
#: What is held against which bound, and whether it is proved for that: experiment, agent.
HELD = (
    (FIRST, LARGER, "exact", True),
    (SECOND, LARGER, "chains", True),
    (FIRST, LARGER, "practical", False),
    (COROLLARY, BANDITS, "exact", True),
)


def experiments(size: Size) -> list[Experiment]:
    """Return the theorems' settings, each where it is proved, and practical ones."""
    with forewarned():
        exact = DelayedPSVI.from_theory(MEDIUM.problem, EPISODES, DELTA)
        chains = DelayedLPSVI.from_theory(MEDIUM.problem, EPISODES, DELTA)
        bandit = DelayedPSLB.from_theory(BANDIT.problem, EPISODES, DELTA, reward_noise=REWARD_NOISE)
    return [
        Experiment(name=name, environments=world, agents=agents, delays=DELAY, episodes=EPISODES, seeds=size.part(5))
        for name, world, agents in (
            (LARGER, MEDIUM, {"exact": exact, "chains": chains, "practical": PRACTICAL}),
            (BANDITS, BANDIT, {"exact": bandit}),
        )
    ]


def bounds(episodes: int) -> dict[str, float]:
    """Return what is promised of regret after so many episodes."""
    sizes = (MEDIUM.dimension, MEDIUM.horizon, episodes, DELTA, DELAY)
    return {
        FIRST: theory.psvi_regret_bound(*sizes).total,
        SECOND: theory.lpsvi_regret_bound(*sizes).total,
        COROLLARY: theory.bandit_regret_bound(BANDIT.dimension, episodes, DELTA, DELAY, REWARD_NOISE).total,
    }


def checks(played: Played[Size]) -> list[Check]:
    """Return the bounds beside the regret that was played."""
    found, bound = [], bounds(EPISODES)
    for theorem, name, agent, applies in HELD:
        case, ends = shown(played.experiments[name].agents[agent]), final_regret(played.results[name], agent=agent)
        found.append(check(theorem, "regret ≤ its bound", case, bound[theorem], ends, 1 - DELTA, applies=applies))
    return found


def all_checks(played: Played[Size]) -> list[Check]:
    """Return the claims of all parts of the study."""
    measured = [each for values in played.measured.values() for each in values if isinstance(each, Check)]
    return measured + (checks(played) if LARGER in played.results else [])


def curves(played: Played[Size]) -> list[Series]:
    """Return regret, that of random actions, the largest there can be, and the bounds."""
    marks = np.unique(np.geomspace(1, EPISODES, 60).round().astype(np.int64))
    x, bound = marks.astype(np.float64), [bounds(int(k)) for k in marks]
    regret = {
        f"regret: {shown(agent)}": played.results[LARGER].regret(agent=label).mean(axis=0)[marks - 1]
        for label, agent in played.experiments[LARGER].agents.items()
        if label != "chains"
    }
    aimless = MEDIUM.optimal_value - float(MEDIUM.start @ uniform_values(MEDIUM)[0])
    beside = {
        "regret: uniformly random actions": aimless * x,
        "HK, the largest regret there can be": MEDIUM.horizon * x,
        **{f"bound of {theorem}": np.array([each[theorem] for each in bound]) for theorem in (FIRST, SECOND)},
    }
    return [Series(name=n, x=x, y=y, dashed=n in beside) for n, y in (regret | beside).items()]


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
    told = [*untrue(found), f"After {EPISODES} episodes: {ends}."]
    if all(check.bound > MEDIUM.horizon * EPISODES for check in found):
        told.append("Each bound on regret exceeds the largest there can be, so that none of them could fail.")
    return told


ARTEFACT = Artefact(id="regret", order=6, section=section, experiments=experiments, findings=findings)
