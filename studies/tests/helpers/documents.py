"""Small documents, tables and charts to render."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from belated_studies.reports.document import Cell, Chart, Document, Section, Series, Table

MEASURED = Cell(value=11.53, low=11.4, high=11.66, published=11.48, published_spread=0.81, verdict="reproduced")


def document(*parts: Table | Chart) -> Document:
    """Return a document of one section."""
    tables = [part for part in parts if isinstance(part, Table)]
    charts = [part for part in parts if isinstance(part, Chart)]
    section = Section(id="s", title="s", tables=tables, charts=charts)
    return Document(title="t", summary=[], facts={}, sections=[section])


def table(*rows: list[str | Cell], name: str = "returns") -> Table:
    """Return a table of agents and returns."""
    return Table(id=name, title="Returns", caption="Of the last episodes.", columns=["agent", "return"], rows=rows)


def series(name: str, *heights: float, spread: float | None = None, dashed: bool = False) -> Series:
    """Return a curve over 1, 2, 3 and so on."""
    y = np.array(heights)
    low, high = (y - spread, y + spread) if spread is not None else (None, None)
    return Series(name=name, x=np.arange(1.0, 1 + y.size), y=y, low=low, high=high, dashed=dashed)


def chart(
    *drawn: Series, bars: bool = False, log: bool = False, level: tuple[str, float] | None = None, name: str = "c"
) -> Chart:
    """Return a chart of curves or bars."""
    return Chart(
        id=name,
        title="Cost in $ and $",
        caption="",
        x_label="episode",
        y_label="regret",
        series=drawn,
        bars=bars,
        log_x=log,
        log_y=log,
        level=level,
    )


def opened(*parts: Table | Chart) -> Document:
    """Return a document that opens with a table and bars over names, before a section of `parts`."""
    drawn = Chart(
        id="glance",
        title="At a glance",
        caption="",
        x_label="",
        y_label="return",
        series=[Series(name="theirs", x=np.arange(2.0), y=np.array([1.0, 2.0]))],
        bars=True,
        categories=["slow", "fast"],
    )
    opening = Section(
        id="opening", title="hidden title", tables=[table(["DPSVI", MEASURED], name="first")], charts=[drawn]
    )
    return replace(document(*parts), summary=["All is well."], opening=opening)
