"""The opening shows Table 2, and nothing if it was not played."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

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
    assert drawn["UCBVI, Pareto"] == [7.20, 18.5, 18.5]
    for delay, agent, *cells in table.rows:
        numbers = [cell.value for cell in cells if isinstance(cell, Cell)]
        assert numbers == drawn[f"{agent}, {delay}"]


def test_every_cell_says_whether_it_has_converged(played: Any) -> None:
    section = opening(played(table_2.ARTEFACT))
    assert section is not None
    ours = [[cell for cell in row if isinstance(cell, Cell)][1:] for row in section.tables[0].rows]
    states = {
        str(row[1]): {cell.note.partition(",")[0] for cell in cells}
        for row, cells in zip(section.tables[0].rows, ours, strict=True)
    }
    assert states == {"PSVI": {"converged"}, "LPSVI": {"converged"}, "UCBVI": {"still rising"}}
    assert {cell.published for cells in ours for cell in cells} == {None}, "it has a column of its own"


def test_without_table_2_there_is_none(played: Any) -> None:
    assert opening(replace(played(table_2.ARTEFACT), results={})) is None
