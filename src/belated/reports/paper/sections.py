"""The sections of the paper's report, one function for each artefact: rows in, tables and charts out."""

from __future__ import annotations

from typing import Any

import numpy as np

from belated.evaluation import Estimate, episodes_to_best, mean_interval, statistic_interval, upon_convergence
from belated.experiments.paper import BLOCKS, DELAYS, LOMAX, SIZES
from belated.reports.document import Cell, Chart, Section, Series, Table
from belated.reports.paper.material import (
    BLOCK_NAMES,
    DELAY_NAMES,
    NAMES,
    Material,
    band_series,
    comparison,
    moving_average,
    settings_text,
)
from belated.reports.paper.verdicts import EPISODE_TOLERANCE, RETURN_TOLERANCE, RULE
from belated.rng import stream
from belated.studies.paper import published

SIZE_COLUMNS = {pairs: f"|S||A| = {pairs}" for pairs in SIZES}


def returns(material: Material, experiment: str, **pick: str) -> Estimate:
    """Return the value upon convergence of one agent."""
    return upon_convergence(material.results[experiment].array("value", **pick)).estimate


def estimate_cell(estimate: Estimate, *, digits: int = 2, verdict: str | None = None) -> Cell:
    """Return an estimate as a cell without a published number."""
    return Cell(value=estimate.value, low=estimate.low, high=estimate.high, digits=digits, verdict=verdict)


def settings_table(material: Material, name: str, experiments: dict[str, str]) -> Table:
    """Return the settings of every agent of `experiments`, by block."""
    rows = [
        [block, NAMES.get(agent, agent), settings_text(values)]
        for block, experiment in experiments.items()
        for agent, values in material.settings[experiment].items()
    ]
    return Table(
        id=name, title="Hyper-parameters", caption="As played.", columns=["Block", "Agent", "Settings"], rows=rows
    )


def figure_1(material: Material) -> Section:
    """Returns over episodes under three delays, |A| = 50."""
    charts: list[Chart] = []
    rows: list[list[str | Cell]] = []
    for block in BLOCKS:
        results = material.results[f"figure-1-{block}"]
        for delay in DELAYS:
            series = [
                band_series(NAMES[agent], moving_average(results.array("value", agent=agent, delay=delay)))
                for agent in results.agents
            ]
            charts.append(
                Chart(
                    id=f"figure-1-{block}-{delay}",
                    title=f"{DELAY_NAMES[delay]} ({block})",
                    caption="Exact value of the policy played: 50-episode moving average, mean, 95 % band over seeds.",
                    x_label="episode",
                    y_label="value",
                    series=series,
                    level=("optimal", published.OPTIMAL_RETURN),
                )
            )
            for agent in results.agents:
                end = returns(material, f"figure-1-{block}", agent=agent, delay=delay)
                rows.append([block, DELAY_NAMES[delay], NAMES[agent], estimate_cell(end)])
    ends = Table(
        id="figure-1-ends",
        title="Figure 1, where the curves end",
        caption="Mean over the last tenth of episodes. The paper gives this figure without numbers.",
        columns=["Block", "Delay", "Agent", "Value"],
        rows=rows,
    )
    blocks = {block: f"figure-1-{block}" for block in BLOCKS}
    return Section(
        id="figure-1",
        title="Figure 1: returns under three delays",
        paragraphs=["Synthetic linear MDP, |A| = 50, d = 10, H = 20."],
        charts=charts,
        tables=[ends, settings_table(material, "figure-1-settings", blocks)],
    )


def figure_2(material: Material) -> Section:
    """Empirical distributions of the three delays."""
    charts = []
    for name, law in {**DELAYS, "lomax": LOMAX}.items():
        drawn = law.sample(stream(0, "delay"), 10_000)
        shown = drawn[drawn <= np.quantile(drawn, 0.95)] if name in ("pareto", "lomax") else drawn
        counts, edges = np.histogram(shown, bins=min(40, len(np.unique(shown)) * 2))
        tail = ", up to the 95 % quantile" if shown.size < drawn.size else ""
        mean = "infinite" if np.isinf(law.mean) else f"{law.mean:g}"
        series = Series(name=DELAY_NAMES[name], x=(edges[:-1] + edges[1:]) / 2, y=counts / drawn.size)
        charts.append(
            Chart(
                id=f"figure-2-{name}",
                title=DELAY_NAMES[name],
                caption=f"10 000 draws{tail}; largest {drawn.max():,}; mean of the law {mean}.",
                x_label="delay in episodes",
                y_label="share",
                series=[series],
                bars=True,
            )
        )
    return Section(id="figure-2", title="Figure 2: the delays", charts=charts)


def table_2(material: Material) -> Section:
    """Returns upon convergence by delay, |A| = 20."""
    tables = []
    for block in BLOCKS:
        experiment = f"table-2-{block}"
        tables.append(
            comparison(
                name=experiment,
                title=f"Table 2, {BLOCK_NAMES[block]}",
                caption="Average return upon convergence: mean over the last tenth of episodes.",
                columns={delay: DELAY_NAMES[delay] for delay in DELAYS},
                measured={
                    agent: {delay: returns(material, experiment, agent=agent, delay=delay) for delay in DELAYS}
                    for agent in material.results[experiment].agents
                },
                published=published.RETURN_BY_DELAY,
                tolerance=RETURN_TOLERANCE,
                digits=2,
                more_is_better=True,
            )
        )
    spreads = []
    for block in BLOCKS:
        results = material.results[f"table-2-{block}"]
        for agent in results.agents:
            cells: list[str | Cell] = [block, NAMES[agent]]
            for delay in DELAYS:
                found = upon_convergence(results.array("value", agent=agent, delay=delay))
                cells.append(
                    f"±{found.spread_over_seeds:.2f} seeds, ±{found.spread_over_episodes:.2f} seeds × episodes"
                )
            spreads.append(cells)
    tables.append(
        Table(
            id="table-2-spreads",
            title="Table 2, spreads",
            caption="Standard deviations: the paper does not say what its ± is, so both candidates are printed.",
            columns=["Block", "Agent", *(DELAY_NAMES[delay] for delay in DELAYS)],
            rows=spreads,
        )
    )
    lomax = material.results["table-2-lomax"]
    other: list[list[str | Cell]] = [
        [NAMES[agent], estimate_cell(returns(material, "table-2-lomax", agent=agent))] for agent in lomax.agents
    ]
    tables.append(
        Table(
            id="table-2-lomax",
            title="Table 2, the other reading of Pareto",
            caption="Tuned agents under the Lomax law of the same shape and scale, whose least delay is 0, not 500.",
            columns=["Agent", DELAY_NAMES["lomax"]],
            rows=other,
        )
    )
    blocks = {block: f"table-2-{block}" for block in BLOCKS}
    return Section(
        id="table-2",
        title="Table 2: returns under three delays",
        paragraphs=["Synthetic linear MDP, |A| = 20, d = 10, H = 20; the optimum is 11.96.", RULE],
        tables=[*tables, settings_table(material, "table-2-settings", blocks)],
    )


def _best_episode(curve: Any) -> float:
    return float(episodes_to_best(curve[np.newaxis]))


def table_3(material: Material) -> Section:
    """Episodes to the highest expected return by size."""
    tables = []
    for block in BLOCKS:
        results = material.results[f"sizes-{block}"]
        tables.append(
            comparison(
                name=f"table-3-{block}",
                title=f"Table 3, {BLOCK_NAMES[block]}",
                caption="First episode at which the 50-episode moving average reaches 99 % of its own maximum.",
                columns=SIZE_COLUMNS,
                measured={
                    agent: {
                        pairs: statistic_interval(
                            results.array("value", agent=agent, environment=f"size-{pairs}"), _best_episode
                        )
                        for pairs in SIZES
                    }
                    for agent in results.agents
                },
                published=published.EPISODES_BY_SIZE,
                tolerance=EPISODE_TOLERANCE,
                digits=0,
                more_is_better=False,
            )
        )
    return Section(
        id="table-3",
        title="Table 3: episodes to the highest expected return",
        paragraphs=[
            "Synthetic linear MDP under Poisson delays, E[τ] = 50. An agent that never learns reaches its own low "
            "maximum early, so read this table together with Table 4.",
        ],
        tables=tables,
    )


def table_4(material: Material) -> Section:
    """Returns upon convergence by size."""
    tables = []
    for block in BLOCKS:
        experiment = f"sizes-{block}"
        tables.append(
            comparison(
                name=f"table-4-{block}",
                title=f"Table 4, {BLOCK_NAMES[block]}",
                caption="Average return upon convergence: mean over the last tenth of episodes.",
                columns=SIZE_COLUMNS,
                measured={
                    agent: {
                        pairs: returns(material, experiment, agent=agent, environment=f"size-{pairs}")
                        for pairs in SIZES
                    }
                    for agent in material.results[experiment].agents
                },
                published=published.RETURN_BY_SIZE,
                tolerance=RETURN_TOLERANCE,
                digits=2,
                more_is_better=True,
            )
        )
    blocks = {block: f"sizes-{block}" for block in BLOCKS}
    return Section(
        id="table-4",
        title="Table 4: returns for growing action spaces",
        paragraphs=["The same runs as Table 3."],
        tables=[*tables, settings_table(material, "table-4-settings", blocks)],
    )


def figure_3(material: Material) -> Section:
    """Cumulative regret on RiverSwim."""
    charts: list[Chart] = []
    rows: list[list[str | Cell]] = []
    for block in BLOCKS:
        results = material.results[f"figure-3-{block}"]
        charts.append(
            Chart(
                id=f"figure-3-{block}",
                title=f"RiverSwim, {block}",
                caption="Cumulative regret, mean and 95 % band over seeds.",
                x_label="episode",
                y_label="cumulative regret",
                series=[band_series(NAMES[agent], results.regret(agent=agent)) for agent in results.agents],
            )
        )
        ucbvi = float(results.regret(agent="ucbvi")[:, -1].mean())
        for agent in results.agents:
            regret = mean_interval(results.regret(agent=agent)[:, -1])
            value = returns(material, f"figure-3-{block}", agent=agent)
            optimal = float(results.array("optimal", agent=agent).mean())
            judged = None
            if agent in ("psvi", "lpsvi"):
                judged = "ordering reproduced" if regret.value < ucbvi else "not reproduced"
            rows.append(
                [
                    block,
                    NAMES[agent],
                    estimate_cell(regret, digits=0, verdict=judged),
                    estimate_cell(value),
                    Cell(value=100 * value.value / optimal, digits=1),
                ]
            )
    ends = Table(
        id="figure-3-ends",
        title="Figure 3, where the curves end",
        caption=(
            "The paper shows this figure without numbers; its claim is that both posterior samplers end with less "
            "regret than UCBVI, and that is what the verdict is about."
        ),
        columns=["Block", "Agent", "Cumulative regret", "Value upon convergence", "Per cent of the optimum"],
        rows=rows,
    )
    blocks = {block: f"figure-3-{block}" for block in BLOCKS}
    return Section(
        id="figure-3",
        title="Figure 3: regret on RiverSwim",
        paragraphs=["RiverSwim with |S| = 5, d = 10, H = 20 under Poisson delays, E[τ] = 5."],
        charts=charts,
        tables=[ends, settings_table(material, "figure-3-settings", blocks)],
    )
