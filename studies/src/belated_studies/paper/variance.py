"""The paper's future work: visits weighted by the variance of their targets, and regret against the horizon."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import NamedTuple

import numpy as np

from belated.agents import DelayedPSVI, Settings, VarianceWeightedPSVI
from belated.delays import Poisson
from belated.environments import FiniteMDP, RandomLinearMDP, RiverSwim
from belated.evaluation import Estimate, mean_interval
from belated.runner import Experiment, Results
from belated.types import Floats
from belated_studies.cells_and_curves import cell, final_regret
from belated_studies.paper.setting import PaperSize
from belated_studies.reports.document import Cell, Chart, Row, Section, Series, Table
from belated_studies.study import Artefact, Played

HORIZONS = (10, 20, 40, 80)
EPISODES = 1000
#: Every candidate plays twice as many; the first half chooses, the second half is reported.
SEEDS = 5
SCALES = (0.03, 0.1, 0.3, 1.0, 3.0)
#: λ is H to this power: a prior that expects weights as large as the return has −2.
POWERS = (0, -1, -2, -3)

PLAIN, WEIGHTED = "Delayed-PSVI", "with variance weights"
KINDS: dict[str, Callable[..., Settings]] = {PLAIN: DelayedPSVI, WEIGHTED: VarianceWeightedPSVI}


class Family(NamedTuple):
    """Problems that differ in their horizon."""

    title: str
    world: Callable[[int], FiniteMDP]
    shared: bool
    """Whether steps share a regression, as the dynamics allow."""


FAMILIES: dict[str, Family] = {
    "riverswim": Family("RiverSwim, 5 states", lambda horizon: RiverSwim(horizon=horizon), True),
    "linear": Family(
        "Random linear MDP, S = 15, A = 4, d = 8",
        lambda horizon: RandomLinearMDP(states=15, actions=4, dimension=8, horizon=horizon, bernoulli=True),
        False,
    ),
}


def candidates(family: Family, horizon: int) -> dict[str, dict[str, Settings]]:
    """Return the candidates of each agent by label: equally many, on the same grid."""
    return {
        kind: {
            f"{kind}, ν = {scale:g}, λ = H^{power}": make(
                scale=scale, ridge=float(horizon) ** power, shared=family.shared
            )
            for scale in SCALES
            for power in POWERS
        }
        for kind, make in KINDS.items()
    }


def experiments(size: PaperSize) -> list[Experiment]:
    """Return all candidates on every problem."""
    return [
        Experiment(
            name=f"variance-{name}-{horizon}",
            environments=family.world(horizon),
            agents={label: one for group in candidates(family, horizon).values() for label, one in group.items()},
            delays={"poisson": Poisson(10)},
            episodes=min(EPISODES, size.episodes),
            seeds=2 * min(SEEDS, size.seeds),
        )
        for name, family in FAMILIES.items()
        for horizon in HORIZONS
    ]


class Best(NamedTuple):
    """The candidate that was best on the seeds that choose, and its regret on the others."""

    label: str
    regret: Floats


def best(results: Results, labels: Mapping[str, Settings]) -> Best:
    """Choose on the first half of the seeds."""
    regret = {label: final_regret(results, agent=label) for label in labels}
    half = len(next(iter(regret.values()))) // 2
    label = min(regret, key=lambda each: float(regret[each][:half].mean()))
    return Best(label, regret[label][half:])


def chosen(played: Played[PaperSize], name: str, horizon: int) -> dict[str, Best]:
    """Return the best candidate of each agent on one problem."""
    results = played.results[f"variance-{name}-{horizon}"]
    return {kind: best(results, labels) for kind, labels in candidates(FAMILIES[name], horizon).items()}


def exponent(found: list[Best]) -> Estimate:
    """Return the slope of log regret against log H, fitted for each seed."""
    rows = np.log(np.maximum([one.regret for one in found], 1e-9))
    return mean_interval(np.polyfit(np.log(HORIZONS), rows, 1)[0])


def section(played: Played[PaperSize]) -> Section:
    """Return regret against H of both agents, and how it grows."""
    charts, tables = [], []
    for name, family in FAMILIES.items():
        found = {horizon: chosen(played, name, horizon) for horizon in HORIZONS}
        charts.append(
            Chart(
                id=f"variance-{name}",
                title=f"Regret against the horizon: {family.title}",
                caption=f"Regret after {EPISODES:,} episodes under Poisson(10), mean and 95 % interval over seeds.",
                x_label="horizon H",
                y_label="cumulative regret",
                series=[_series(kind, [found[horizon][kind] for horizon in HORIZONS]) for kind in KINDS],
                log_x=True,
                log_y=True,
            )
        )
        tables.append(_table(name, family, found))
    return Section(
        id="variance",
        title="Future work: variance weights",
        paragraphs=[
            "The paper expects that weighting visits by the variance of their targets, after He et al. (2023), would "
            "take a factor of √H off the regret. Here posterior sampling has such weights. Both agents have "
            f"{len(SCALES) * len(POWERS)} candidates on the same grid (ν, and λ as a power of H); the best on five "
            "seeds is reported on five others.",
        ],
        charts=charts,
        tables=tables,
    )


def _series(kind: str, found: list[Best]) -> Series:
    estimates = [mean_interval(one.regret) for one in found]
    y, low, high = (np.array([getattr(one, part) for one in estimates]) for part in ("value", "low", "high"))
    return Series(name=kind, x=np.array(HORIZONS, dtype=np.float64), y=y, low=np.maximum(low, 1e-3), high=high)


def _table(name: str, family: Family, found: Mapping[int, Mapping[str, Best]]) -> Table:
    rows: list[Row] = []
    for horizon, both in found.items():
        plain, weighted = both[PLAIN], both[WEIGHTED]
        rows.append(
            [
                str(horizon),
                *(cell(mean_interval(one.regret), 0) for one in (plain, weighted)),
                Cell(value=float(weighted.regret.mean() / plain.regret.mean()), digits=2),
                plain.label.partition(", ")[2],
                weighted.label.partition(", ")[2],
            ]
        )
    slopes = [cell(exponent([both[kind] for both in found.values()]), 2) for kind in KINDS]
    rows.append(["slope in log H", *slopes, "", "", ""])
    return Table(
        id=f"variance-{name}-table",
        title=family.title,
        caption="The last row is the slope of log regret against log H, fitted for each seed.",
        columns=["H", PLAIN, f"The same {WEIGHTED}", "Ratio", f"Chosen: {PLAIN}", f"Chosen: {WEIGHTED}"],
        rows=rows,
    )


def findings(played: Played[PaperSize]) -> list[str]:
    """Tell what the weights are worth at the longest horizon."""
    told = []
    for name, family in FAMILIES.items():
        both = chosen(played, name, HORIZONS[-1])
        plain, weighted = (float(both[kind].regret.mean()) for kind in KINDS)
        told.append(f"{family.title}: {weighted:.0f} with weights, {plain:.0f} without")
    return [f"Variance weights, regret at H = {HORIZONS[-1]} with equal searches: {'; '.join(told)}."]


ARTEFACT = Artefact(id="variance", order=13, experiments=experiments, section=section, findings=findings, extra=True)
