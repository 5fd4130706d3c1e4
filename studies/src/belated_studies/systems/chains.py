"""Chains: active against lazy updating of the same tabular base, and what delay costs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from belated.agents import Settings, TabularUCBVI
from belated.delays import Constant, Poisson
from belated.environments import Chain
from belated.evaluation import Estimate, difference
from belated.runner import Experiment, Results
from belated_studies.cells_and_curves import cell, final_regret, name_of
from belated_studies.reports.document import Row, Section, Table
from belated_studies.study import Artefact, Played
from belated_studies.systems.comparisons import penalties, penalty_table, regret_chart, searched
from belated_studies.systems.testbeds import Size, experiment
from belated_studies.winners import tuned

CHAINS = {length: f"chain-{length}" for length in (5, 10, 20)}
DELAYS = {mean: f"mean-{mean}" for mean in (0, 100, 200, 300, 500)}
COMPARED = 300
"""The mean delay at which lazy and active updating are compared."""
LAZY = {alpha: f"lazy-{alpha}" for alpha in (1, 4, 16)}
"""By α of lazy updating."""


def agents() -> dict[str, Settings]:
    """Return active and lazy updating of the same tabular base, and posterior sampling."""
    best = tuned("chain")
    base = best["tabular-ucbvi"]
    assert isinstance(base, TabularUCBVI)
    lazy = {label: replace(base, updating="lazy", growth=float(alpha)) for alpha, label in LAZY.items()}
    return {"active": base, **lazy, "psvi": best["psvi"]}


def experiments(size: Size) -> list[Experiment]:
    """Return all chains under all delays."""
    worlds = {label: Chain(length) for length, label in CHAINS.items()}
    delays = {label: Poisson(mean) if mean else Constant(0) for mean, label in DELAYS.items()}
    return [experiment("chains", size, worlds, agents(), delays)]


def over_active(results: Results, environment: str) -> list[Estimate]:
    """Return by how much the regret of each lazy rule exceeds that of active updating, paired by seed."""
    pick = {"environment": environment, "delay": DELAYS[COMPARED]}
    active = final_regret(results, agent="active", **pick)
    return [difference(final_regret(results, agent=lazy, **pick), active) for lazy in LAZY.values()]


def as_good(gaps: Sequence[Estimate]) -> bool:
    """Whether no lazy rule has less regret than active updating beyond its interval."""
    return all(gap.high >= 0 for gap in gaps)


def section(played: Played[Size]) -> Section:
    """Return regret against the mean delay, and what lazy updating costs."""
    results, size = played.results["chains"], played.size
    found = penalties(results, DELAYS)
    caption = f"Poisson delays, {size.episodes} episodes; mean and 95 % interval over {size.seeds} seeds."
    charts = []
    for length, label in CHAINS.items():
        title = f"Chain with H = S = {length}: regret against the mean delay"
        curves = [one.series for one in found if one.environment == label]
        charts.append(regret_chart(f"chains-{length}", title, caption, "mean delay E[τ] in episodes", curves))
    title = "Regret of lazy updating over that of active updating"
    caption = (
        f"Difference in cumulative regret at E[τ] = {COMPARED}, paired by seed, with 95 % intervals. "
        "Reproduced: no interval of a lazy rule lies below zero. Refuted: one does."
    )
    columns = ["Environment", *(name_of(label) for label in LAZY.values()), "active ≥ lazy"]
    gaps = {chain: over_active(results, chain) for chain in CHAINS.values()}
    rows: list[Row] = [
        [chain, *(cell(gap, digits=1) for gap in each), "reproduced" if as_good(each) else "refuted"]
        for chain, each in gaps.items()
    ]
    lazy = Table(id="chains-lazy", title=title, caption=caption, columns=columns, rows=rows)
    paragraph = (
        "Howson et al. report that active updating is at least as good as lazy updating, that a larger α brings lazy "
        "updating nearer to it, and that the penalty of delay is additive. All agents but Delayed-PSVI are tabular "
        "UCBVI, with different update rules."
    )
    tables = [penalty_table("chains-lines", found), lazy, searched(played, "chains-settings", "chains")]
    title = "Chains: active against lazy updating"
    return Section(id="chains", title=title, paragraphs=[paragraph], charts=charts, tables=tables)


def findings(played: Played[Size]) -> list[str]:
    """Return whether what Howson et al. report of lazy updating and of delay is so here."""
    results = played.results["chains"]
    gaps = [over_active(results, chain) for chain in CHAINS.values()]
    good = [as_good(each) for each in gaps]
    nearer = [abs(each[-1].value) <= abs(each[0].value) for each in gaps]
    linear = sum(one.linear for one in penalties(results, DELAYS) if one.agent == "active")
    return [
        "Active updating is at least as good as lazy updating (Howson et al.): "
        f"{'reproduced' if all(good) else 'refuted'} on {sum(good)} of {len(good)} chains.",
        f"A larger α is nearer to active updating: {'reproduced' if all(nearer) else 'refuted'} on "
        f"{sum(nearer)} of {len(nearer)} chains.",
        "The penalty of delay is additive and linear (Howson et al.) under active updating on "
        f"{linear} of {len(gaps)} chains.",
    ]


ARTEFACT = Artefact(id="chains", order=5, section=section, experiments=experiments, findings=findings)
