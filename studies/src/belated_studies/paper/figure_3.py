"""Figure 3: cumulative regret on RiverSwim."""

from __future__ import annotations

from dataclasses import replace

from belated.delays import Poisson
from belated.environments import RiverSwim
from belated.evaluation import mean_interval
from belated.runner import Experiment, Results
from belated_studies.cells_and_curves import cell, converged, final_regret, name_of, regret_series, settings_table
from belated_studies.paper.agents import riverswim
from belated_studies.paper.comparing import CONVERGED, ENOUGH, convergence
from belated_studies.paper.setting import BLOCKS, PaperSize, experiment
from belated_studies.reports.document import FAILS, HOLDS, OPEN, Block, Cell, Chart, Row, Section, Table
from belated_studies.study import Artefact, Played

#: Of each block, the experiment.
RUNS = {block: f"figure-3-{block}" for block in BLOCKS}
DELAYS = {"poisson": Poisson(5)}


def experiments(size: PaperSize) -> list[Experiment]:
    """Return the runs of both blocks."""
    return [
        experiment(name, size, riverswim(block), world=RiverSwim(), delays=DELAYS, seeds=size.riverswim_seeds)
        for block, name in RUNS.items()
    ]


def section(played: Played[PaperSize]) -> Section:
    """Return the curves of each block, and a table of where they end."""
    ends = Table(
        id="figure-3-ends",
        title="Figure 3, where the curves end",
        caption=(
            "The paper shows this figure without numbers; its claim is that both posterior samplers end with less "
            "regret than UCBVI, and that is what the verdict is about: it holds, or does not, if the 95 % intervals "
            f"over seeds are apart, after at least the {ENOUGH} episodes that the paper reports elsewhere."
        ),
        columns=["Block", "Agent", "Cumulative regret", "Value upon convergence", "Per cent of the optimum"],
        rows=[row for block, name in RUNS.items() for row in _ends(block, played.results[name], played.size.episodes)],
        prominent=True,
    )
    return Section(
        id="figure-3",
        title="Figure 3: regret on RiverSwim",
        paragraphs=["RiverSwim with |S| = 5, d = 10, H = 20 under Poisson delays, E[τ] = 5."],
        charts=[_chart(block, played.results[name]) for block, name in RUNS.items()],
        tables=[ends, settings_table(played, "figure-3-settings", RUNS)],
    )


def _chart(block: Block, results: Results) -> Chart:
    return Chart(
        id=f"figure-3-{block}",
        title=f"RiverSwim, {block}",
        caption="Cumulative regret, mean and 95 % band over seeds.",
        x_label="episode",
        y_label="cumulative regret",
        series=[regret_series(results, agent) for agent in results.agents],
        block=block,
    )


def _ends(block: Block, results: Results, episodes: int) -> list[Row]:
    ucbvi = mean_interval(final_regret(results, agent="ucbvi"))
    rows: list[Row] = []
    for agent in results.agents:
        regret, value = mean_interval(final_regret(results, agent=agent)), converged(results, agent=agent)
        optimal = float(results.array("optimal", agent=agent).mean())
        judged = None
        if agent in ("psvi", "lpsvi"):
            judged = OPEN
            if episodes >= ENOUGH:
                judged = HOLDS if regret.high < ucbvi.low else FAILS if regret.low > ucbvi.high else OPEN
        share = Cell(value=100 * value.value / optimal, digits=1)
        state = convergence(results.array("value", agent=agent), optimal, episodes)
        note = "" if state == CONVERGED else state
        rows.append([block, name_of(agent), cell(regret, 0, verdict=judged), replace(cell(value), note=note), share])
    return rows


ARTEFACT = Artefact(id="figure-3", order=6, experiments=experiments, section=section)
