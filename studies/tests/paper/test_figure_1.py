from __future__ import annotations

import numpy as np
from made import made
from small import SMALL

from belated_studies.paper import figure_1
from belated_studies.paper.setting import BLOCKS, DELAYS
from belated_studies.reports.document import Cell
from belated_studies.study import Played


def test_every_block_and_delay_has_a_chart_whose_ends_are_in_the_table() -> None:
    size = SMALL.resized(seeds=1, episodes=100)
    agents = {one.name: list(one.agents) for one in figure_1.experiments(size)}
    results = {
        name: made({("world", delay, agent): [[float(i)] * 90 + [2.0 * i] * 10]
                    for delay in DELAYS for i, agent in enumerate(agents[name])})
        for name in figure_1.RUNS.values()
    }  # fmt: skip
    played = Played(size, {one.name: one for one in figure_1.experiments(size)}, results)
    section = figure_1.section(played)
    assert [(chart.block, chart.id) for chart in section.charts] == [
        (block, f"figure-1-{block}-{delay}") for block in BLOCKS for delay in DELAYS
    ]
    tuned = section.charts[-1]
    assert [series.name for series in tuned.series][-1] == "Delayed-UCBVI"
    # the last 50 episodes of the second agent: 40 at 1 and 10 at 2
    assert tuned.series[1].y[-1] == 1.2
    row = next(row for row in section.tables[0].rows if row[2] == "Delayed-LPSVI")
    assert isinstance(row[3], Cell)
    assert row[3].value == 2.0


def test_a_moving_average_is_that_of_the_window_and_of_what_there_is_at_first() -> None:
    curves = np.random.default_rng(0).random((2, 30))
    found = figure_1.moving_average(curves, 7)
    for k in range(30):
        np.testing.assert_allclose(found[:, k], curves[:, max(0, k - 6) : k + 1].mean(axis=1))
