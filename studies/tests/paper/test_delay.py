from __future__ import annotations

import pytest
from made import made
from small import SMALL

from belated_studies.paper import delay
from belated_studies.reports.document import Cell
from belated_studies.study import Played


def test_regret_that_grows_with_the_delay_is_a_line() -> None:
    values = {
        ("world", f"mean-{mean}", agent): [[3.0 - 0.002 * mean - 0.1 * seed] * 50 for seed in range(3)]
        for mean in delay.MEANS
        for agent in ("psvi", "lpsvi", "ucbvi")
    }
    section = delay.section(Played(SMALL, {}, {"delay": made(values)}))
    (table,) = section.tables
    at_zero, slope, deviation, growth = (entry.value for entry in table.rows[0] if isinstance(entry, Cell))
    # of each of 50 episodes: 1 below the optimum, 0.1 more a seed, 0.002 more a unit of delay
    assert (at_zero, slope, deviation) == pytest.approx((55.0, 0.1, 0.0), abs=1e-9)
    assert growth == pytest.approx(1.0)
    (chart,) = section.charts
    assert chart.series[0].x.tolist() == [0, 10, 50, 100, 200, 500]
