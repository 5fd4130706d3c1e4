"""What the interactive and the printed charts of one report share: colours, marks and the places of bars."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from belated._util.plot_style import LINE_STYLES, PALETTE
from belated.types import Floats
from belated_studies.reports.document import VERDICTS, Chart, Document

#: A verdict is told by symbol and word, never by colour alone.
VERDICT_SYMBOLS: Mapping[str, str] = dict(zip(VERDICTS, "✓✗✓↑≈↓✓✗?", strict=True))
#: The colour of each.
VERDICT_COLOURS: Mapping[str, str] = dict(
    zip(VERDICTS, ("good", "poor", "good", "fair", "fair", "poor", "good", "poor", "open"), strict=True)
)

#: Bars have no line style: where the colours start again, a hatch tells the bars apart.
_HATCHES = ("", "/", ".", "x")
_MOST_CATEGORIES = 12  # with more places than can be labelled, bars are a histogram over numbers


@dataclass(frozen=True)
class Style:
    """How one name is drawn in every chart of a report."""

    colour: str
    line: str
    hatch: str


@dataclass(frozen=True, eq=False)
class Bars:
    """Where the bars of a chart stand."""

    categories: list[str] | None
    """What is written under the places 0, 1, 2 and so on; None: the axis is one of numbers."""
    centres: list[Floats]
    """For each series, the place of each of its bars."""
    step: float
    """From one place to the next."""
    grouped: bool
    """Whether the series share places, and so stand side by side."""


def styles(document: Document) -> dict[str, Style]:
    """Give each name a style, the same in every chart of `document` and its own in each.

    Once the colours run out, names that never meet in a chart share one before a name gets a dashed or hatched one.
    """
    # The opening comes last, so that names of the sections look the same with and without one.
    ordered = [*document.sections, *([] if document.opening is None else [document.opening])]
    charts = [[series.name for series in chart.series] for section in ordered for chart in section.charts]
    every = range(len(PALETTE) * len(LINE_STYLES))
    uses: Counter[int] = Counter()
    chosen: dict[str, int] = {}
    for name in dict.fromkeys(name for names in charts for name in names):
        met = {chosen[other] for names in charts if name in names for other in names if other in chosen}
        free = [place for place in every if place not in met] or list(every)
        chosen[name] = min(free, key=lambda place: (place // len(PALETTE), uses[place]))
        uses[chosen[name]] += 1
    return {
        name: Style(
            PALETTE[place % len(PALETTE)],
            LINE_STYLES[place // len(PALETTE)],
            _HATCHES[place // len(PALETTE)],
        )
        for name, place in chosen.items()
    }


def bar_places(chart: Chart) -> Bars:
    """Place the bars of `chart`: by name where each series has one, by category where there are few, else by x."""
    if chart.categories is not None:
        return Bars(list(chart.categories), [series.x for series in chart.series], step=1.0, grouped=True)
    if all(series.x.size == 1 for series in chart.series):
        names = [series.name for series in chart.series]
        return Bars(names, [np.array([float(i)]) for i in range(len(names))], step=1.0, grouped=False)
    positions = np.unique(np.concatenate([series.x for series in chart.series]))
    if positions.size > _MOST_CATEGORIES:
        return Bars(None, [series.x for series in chart.series], step=float(np.diff(positions).min()), grouped=True)
    centres = [np.searchsorted(positions, series.x).astype(np.float64) for series in chart.series]
    return Bars([f"{x:g}" for x in positions], centres, step=1.0, grouped=True)
