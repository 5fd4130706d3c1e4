"""What the report opens with: the returns of Table 2 beside the published ones, as one picture and one table."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import numpy as np

from belated_studies.cells_and_curves import name_of
from belated_studies.paper import published
from belated_studies.paper.agents import TRIO
from belated_studies.paper.setting import DELAYS, LITERAL, TUNED, PaperSize
from belated_studies.paper.table_2 import COMPARISON, RUNS
from belated_studies.reports.document import OPEN, Block, Cell, Chart, Row, Section, Series, Table
from belated_studies.study import Played

#: What the two blocks are called at a glance.
TITLES = {LITERAL: "printed settings", TUNED: "tuned settings"}
SHORT = {"multinomial": "multinomial", "poisson": "Poisson", "pareto": "Pareto"}

Cells = Mapping[Block, Mapping[str, list[Cell]]]


def opening(played: Played[PaperSize]) -> Section | None:
    """Return the picture and the table, None if Table 2 was not played."""
    if not set(RUNS.values()) <= set(played.results):
        return None
    cells = {block: COMPARISON.cells(played, block) for block in RUNS}
    return Section(id="opening", title="At a glance", charts=[_chart(cells)], tables=[_table(cells)])


def _chart(cells: Cells) -> Chart:
    places = [(agent, i) for agent in TRIO for i in range(len(DELAYS))]
    theirs = [published.RETURN_BY_DELAY[agent][list(DELAYS)[i]].value for agent, i in places]
    x = np.arange(len(places), dtype=np.float64)
    bars = [Series(name="paper", x=x, y=np.array(theirs))]
    names = [f"{_short(agent)}, {SHORT[list(DELAYS)[i]]}" for agent, i in places]
    left_out: list[str] = []
    for block, title in TITLES.items():
        found = [cells[block][agent][i] for agent, i in places]
        judged = np.array([cell.verdict != OPEN for cell in found])
        parts = (np.array([getattr(cell, part) for cell in found]) for part in ("value", "low", "high"))
        y, low, high = (np.where(judged, part, np.nan) for part in parts)
        bars.append(Series(name=title, x=x, y=y, low=low, high=high))
        left_out += [
            f"{name} with {title} ({cell.value:.2f}, {cell.note})"
            for name, cell in zip(names, found, strict=True)
            if cell.verdict == OPEN
        ]
    without = f" Left out, since they cannot be judged: {'; '.join(left_out)}." if left_out else ""
    return Chart(
        id="opening-returns",
        title="Returns under three delays, published and measured",
        caption=(
            "Table 2 of the paper and this run of it: mean value over the last tenth of episodes on the synthetic "
            "linear MDP with |A| = 20, with 95 % intervals over seeds. Printed settings are the paper's own; tuned "
            f"ones are the best of one search of equal size for each agent.{without}"
        ),
        x_label="",
        y_label="return",
        series=bars,
        bars=True,
        categories=names,
        level=("optimal", published.OPTIMAL_RETURN),
    )


def _table(cells: Cells) -> Table:
    rows: list[Row] = []
    for i, delay in enumerate(DELAYS):
        for agent in TRIO:
            theirs = published.RETURN_BY_DELAY[agent][delay]
            # The published number has a column of its own here.
            ours = [replace(cells[block][agent][i], published=None, published_spread=None) for block in TITLES]
            paper = Cell(value=theirs.value, note=f"±\N{NO-BREAK SPACE}{theirs.spread:.2f}")
            rows.append([SHORT[delay], _short(agent), paper, *ours])
    return Table(
        id="opening-table",
        title="Returns beside the published ones",
        caption="Of an optimum of 11.96. The rule of comparison stands below, and a curve that still moves says so.",
        columns=["Delay", "Agent", "Paper", *(title.capitalize() for title in TITLES.values())],
        rows=rows,
    )


def _short(agent: str) -> str:
    """Return the name of an agent without what all of them are."""
    return name_of(agent).removeprefix("Delayed-")
