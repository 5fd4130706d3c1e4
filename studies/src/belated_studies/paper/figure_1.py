"""Figure 1: returns over episodes under three delays, |A| = 50."""

from __future__ import annotations

import numpy as np

from belated.runner import Experiment, Results
from belated.types import Floats
from belated_studies.cells_and_curves import band_series, cell, converged, name_of, settings_table
from belated_studies.paper import published
from belated_studies.paper.agents import trio
from belated_studies.paper.setting import BLOCKS, DELAY_NAMES, DELAYS, PaperSize, experiment, synthetic
from belated_studies.reports.document import Block, Chart, Row, Section, Table
from belated_studies.study import Artefact, Played

#: Of each block, the experiment.
RUNS = {block: f"figure-1-{block}" for block in BLOCKS}
#: Episodes averaged in a curve.
WINDOW = 50


def experiments(size: PaperSize) -> list[Experiment]:
    """Return the runs of both blocks."""
    return [experiment(name, size, trio(block), world=synthetic(100), delays=DELAYS) for block, name in RUNS.items()]


def section(played: Played[PaperSize]) -> Section:
    """Return the curves, a chart for each block and delay, and a table of where they end."""
    cases = [(block, delay, played.results[name]) for block, name in RUNS.items() for delay in DELAYS]
    rows: list[Row] = [
        [block, DELAY_NAMES[delay], name_of(agent), cell(converged(results, agent=agent, delay=delay))]
        for block, delay, results in cases
        for agent in results.agents
    ]
    ends = Table(
        id="figure-1-ends",
        title="Figure 1, where the curves end",
        caption="Mean over the last tenth of episodes. The paper gives this figure without numbers.",
        columns=["Block", "Delay", "Agent", "Value"],
        rows=rows,
    )
    return Section(
        id="figure-1",
        title="Figure 1: returns under three delays",
        paragraphs=["Synthetic linear MDP, |A| = 50, d = 10, H = 20."],
        charts=[_chart(*case) for case in cases],
        tables=[ends, settings_table(played, "figure-1-settings", RUNS)],
    )


def _chart(block: Block, delay: str, results: Results) -> Chart:
    return Chart(
        id=f"figure-1-{block}-{delay}",
        title=f"{DELAY_NAMES[delay]} ({block})",
        caption="Exact value of the policy played: 50-episode moving average, mean, 95 % band over seeds.",
        x_label="episode",
        y_label="value",
        series=[
            band_series(
                name_of(agent),
                results.episodes,
                moving_average(results.array("value", agent=agent, delay=delay), WINDOW),
            )
            for agent in results.agents
        ],
        block=block,
        level=("optimal", published.OPTIMAL_RETURN),
    )


def moving_average(curves: Floats, window: int) -> Floats:
    """Return the trailing mean over at most `window` episodes along the last axis.

    >>> moving_average(np.array([[0.0, 2.0, 4.0]]), window=2).tolist()
    [[0.0, 1.0, 3.0]]
    """
    sums = np.cumsum(curves, axis=-1)
    sums[..., window:] -= np.cumsum(curves, axis=-1)[..., :-window]
    return sums / np.minimum(np.arange(1, curves.shape[-1] + 1), window)


ARTEFACT = Artefact(id="figure-1", order=1, experiments=experiments, section=section)
