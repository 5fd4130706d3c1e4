"""What grows with d, up to 4096, and where one way to learn many arrivals overtakes another: tables and figures."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from belated.experiments.timing import (
    LARGE,
    LARGE_DIMENSIONS,
    LARGE_HORIZON,
    UPDATES,
    Timing,
    Update,
    arrivals,
    measure_large,
)
from belated.reports.document import Cell, Chart, Document, Section, Series, Table


def large_document(tell: Callable[[str], None] = lambda text: None) -> Document:
    """Measure, and return the tables and charts."""
    tell("measuring large d")
    timings = measure_large()
    tell("measuring many arrivals at once")
    return describe(timings, arrivals())


def describe(timings: Sequence[Timing], updates: Sequence[Update]) -> Document:
    """Return what was measured as a document."""
    return Document(
        title="Large dimensions",
        summary=[_crossing(updates, dimension) for dimension in sorted({each.dimension for each in updates})],
        facts={"Steps per episode": f"{LARGE_HORIZON}", "Cores": "1"},
        sections=[_growth(timings), _arrivals(updates)],
    )


def _growth(timings: Sequence[Timing]) -> Section:
    series: list[Series] = []
    rows: list[list[str | Cell]] = []
    for variant in LARGE:
        chosen = [timing for timing in timings if timing.variant == variant]
        if not chosen:
            continue
        d, seconds, low, high = (
            np.array([getattr(timing, name) for timing in chosen], dtype=np.float64)
            for name in ("dimension", "seconds", "low", "high")
        )
        series.append(Series(name=variant, x=d, y=1e6 * seconds, low=1e6 * low, high=1e6 * high))
        at = {timing.dimension: timing for timing in chosen}
        cells = [
            Cell(value=1e6 * at[n].seconds, low=1e6 * at[n].low, high=1e6 * at[n].high, digits=0)
            if n in at
            else Cell(value=None, note="too slow")
            for n in LARGE_DIMENSIONS
        ]
        rows.append([variant, *cells])
    about = f"One plan and one arrival, H = {LARGE_HORIZON}, M = 2, N = 40, after 200 trajectories; one core."
    return Section(
        id="growth",
        title="Time against d",
        charts=[
            Chart(
                id="large-d",
                title="Time to plan one episode and take in one trajectory",
                caption=f"{about} Median and range of the repeats.",
                x_label="feature dimension d",
                y_label="microseconds per episode",
                series=series,
                log_x=True,
                log_y=True,
            )
        ],
        tables=[
            Table(
                id="large-d-table",
                title="Microseconds per episode",
                caption=about,
                columns=["Variant", *(f"d = {n}" for n in LARGE_DIMENSIONS)],
                rows=rows,
            )
        ],
    )


def _arrivals(updates: Sequence[Update]) -> Section:
    charts = []
    for dimension in sorted({each.dimension for each in updates}):
        series = []
        for way in UPDATES:
            chosen = [each for each in updates if each.way == way and each.dimension == dimension]
            x, y = (np.array([getattr(each, name) for each in chosen], np.float64) for name in ("arrivals", "seconds"))
            series.append(Series(name=way, x=x, y=1e6 * y))
        charts.append(
            Chart(
                id=f"arrivals-{dimension}",
                title=f"Many arrivals at once, d = {dimension}",
                caption="Time to bring r observations into one factor; median of the repeats, one core.",
                x_label="arrivals r",
                y_label="microseconds",
                series=series,
                log_x=True,
                log_y=True,
            )
        )
    return Section(id="arrivals", title="Many arrivals at once", charts=charts)


def _crossing(updates: Sequence[Update], dimension: int) -> str:
    """Return from how many arrivals on blocks are faster, as a sentence."""
    taken = {(each.way, each.arrivals): each.seconds for each in updates if each.dimension == dimension}
    counts = sorted({count for _, count in taken})
    text = f"d = {dimension}: "
    for other in ("rank one", "refactorising"):
        wins = [count for count in counts if taken["block", count] < taken[other, count]]
        text += f"a block is faster than {other} for {_range(wins, counts)}; "
    return text.removesuffix("; ") + "."


def _range(wins: list[int], counts: list[int]) -> str:
    if not wins:
        return "no number of arrivals"
    if wins == counts:
        return "every number of arrivals"
    return "r in " + ", ".join(str(count) for count in wins)
