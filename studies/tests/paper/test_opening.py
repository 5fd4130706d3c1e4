"""The opening shows Table 2, and nothing if it was not played."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from belated_studies.paper import table_2
from belated_studies.paper.opening import opening
from belated_studies.reports.document import Cell
from belated_studies.reports.style import bar_places


def test_the_picture_and_the_table_show_the_same_numbers(played: Any) -> None:
    section = opening(played(table_2.ARTEFACT))
    assert section is not None
    (chart,), (table,) = section.charts, section.tables
    assert [series.name for series in chart.series] == ["paper", "printed settings", "tuned settings"]
    names = bar_places(chart).categories
    assert names is not None
    drawn = {name: [float(series.y[i]) for series in chart.series] for i, name in enumerate(names)}
    for delay, agent, *cells in table.rows:
        judged = [
            np.nan if cell.verdict == "cannot be judged" else cell.value for cell in cells if isinstance(cell, Cell)
        ]
        np.testing.assert_equal(drawn[f"{agent}, {delay}"], judged)
    # UCBVI still rises, and is not drawn as if it had been measured
    np.testing.assert_equal(drawn["UCBVI, Pareto"], [7.20, np.nan, np.nan])
    assert "Left out, since they cannot be judged: " in chart.caption
    assert "UCBVI, Pareto with printed settings (18.50, still rising)" in chart.caption
    assert chart.series[0].low is not None
    assert chart.series[0].low[0] == 11.53 - 0.76, "the paper's own ±"


def test_every_cell_has_a_verdict_and_says_if_it_moves(played: Any) -> None:
    section = opening(played(table_2.ARTEFACT))
    assert section is not None
    ours = [[cell for cell in row if isinstance(cell, Cell)][1:] for row in section.tables[0].rows]
    states = {
        str(row[1]): {cell.note for cell in cells} for row, cells in zip(section.tables[0].rows, ours, strict=True)
    }
    assert states == {"PSVI": {""}, "LPSVI": {""}, "UCBVI": {"still rising"}}
    assert None not in {cell.verdict for cells in ours for cell in cells}
    assert {cell.published for cells in ours for cell in cells} == {None}, "it has a column of its own"


def test_without_table_2_there_is_none(played: Any) -> None:
    assert opening(replace(played(table_2.ARTEFACT), results={})) is None
