"""The charts of a report as files for slides and papers."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from belated._util.plot_style import INK, drawing, plain_ticks, save_figure
from belated.types import Floats
from belated_studies.reports.document import Chart, Document, Series
from belated_studies.reports.markup import plain
from belated_studies.reports.style import Style, bar_places, styles

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_BAR_GROUP = 0.8  # the part of a category's width that its bars take
#: Up to so many places of a logarithmic axis have ticks of their own.
MOST_PLACES = 8


def write_figures(document: Document, folder: str | Path) -> None:
    """Write every chart of `document` into `folder` as PNG (200 dpi) and PDF, named by its id.

    The same document gives the same bytes.
    """
    drawn = styles(document)
    for section in document.parts:
        for chart in section.charts:
            figure = chart_figure(chart, drawn)
            for ending in ("png", "pdf"):
                save_figure(figure, Path(folder) / f"{chart.id}.{ending}")


def chart_figure(chart: Chart, drawn: Mapping[str, Style]) -> Figure:
    """Return `chart` as a figure, each series in the style that `drawn` gives its name."""
    with drawing() as kind:
        figure = kind(figsize=(6.4, 4.2), layout="constrained")
        axes = figure.subplots()
        (_draw_bars if chart.bars else _draw_curves)(axes, chart, drawn)
        _dress(axes, chart)
        if chart.level is not None:
            _draw_level(axes, *chart.level)
        _legend(figure, axes, chart)
    return figure


def _draw_curves(axes: Axes, chart: Chart, drawn: Mapping[str, Style]) -> None:
    floor = _least_positive(chart) if chart.log_y else -np.inf
    for series in chart.series:
        style = drawn[series.name]
        shown = {**style.curve, **({"linestyle": "--"} if series.dashed else {})}
        if series.low is not None and series.high is not None:
            # A band may reach below zero, where a logarithmic axis has no place: it is cut at the lowest curve.
            low = np.maximum(series.low, floor)
            axes.fill_between(series.x, low, series.high, color=style.colour, alpha=0.18, linewidth=0)
        axes.plot(series.x, series.y, label=_literal(series.name), **shown)
        if series.x.size == 1:  # a line through one point is invisible
            axes.plot(series.x, series.y, color=style.colour, marker="o", markersize=5)


def _draw_bars(axes: Axes, chart: Chart, drawn: Mapping[str, Style]) -> None:
    places = bar_places(chart)
    across = len(chart.series) if places.grouped else 1
    width = places.step / across * (0.96 if places.categories is None else _BAR_GROUP)
    for i, (series, centres) in enumerate(zip(chart.series, places.centres, strict=True)):
        middles = centres + (i - (across - 1) / 2) * width if places.grouped else centres
        style = drawn[series.name]
        axes.bar(
            middles,
            series.y,
            width * 0.92,
            color=style.colour,
            hatch=style.hatch * 2,
            edgecolor="white",
            linewidth=0,
            label=_literal(series.name),
        )
        _draw_whiskers(axes, middles, series)
    if places.categories is None:
        plain_ticks(axes.xaxis)
        return
    axes.set_xticks(range(len(places.categories)), [_literal(category) for category in places.categories])
    if sum(len(category) for category in places.categories) > 70:  # too long to stand side by side
        axes.tick_params(axis="x", rotation=30)
        for label in axes.get_xticklabels():
            label.set_horizontalalignment("right")
            label.set_rotation_mode("anchor")


def _draw_whiskers(axes: Axes, middles: Floats, series: Series) -> None:
    if series.low is not None and series.high is not None:
        axes.errorbar(
            middles,
            series.y,
            yerr=[np.maximum(series.y - series.low, 0), np.maximum(series.high - series.y, 0)],
            fmt="none",
            ecolor=INK,
            elinewidth=1.1,
            capsize=2.5,
        )


def _draw_level(axes: Axes, label: str, height: float) -> None:
    from matplotlib.patheffects import withStroke

    axes.axhline(height, color="black", linestyle="--", linewidth=1.2)
    axes.annotate(
        _literal(label),
        (1.0, height),
        xycoords=axes.get_yaxis_transform(),
        xytext=(-2, 3),
        textcoords="offset points",
        horizontalalignment="right",
        verticalalignment="bottom",
        fontsize=9,
        path_effects=[withStroke(linewidth=3, foreground="white")],
    )


def _dress(axes: Axes, chart: Chart) -> None:
    axes.set_title(_literal(chart.title), fontweight="bold", wrap=True)
    axes.set_xlabel(_literal(chart.x_label))
    axes.set_ylabel(_literal(chart.y_label))
    axes.xaxis.grid(not chart.bars)
    axes.margins(x=0.02, y=0.08)
    if chart.log_y:
        axes.set_yscale("log", nonpositive="clip" if chart.bars else "mask")
    else:
        plain_ticks(axes.yaxis)
    if not chart.bars:  # bars stand evenly, one next to the other, on ticks of their own
        if chart.log_x:
            axes.set_xscale("log", nonpositive="mask")
            places = sorted({float(x) for series in chart.series for x in series.x if x > 0})
            if len(places) <= MOST_PLACES:  # powers of ten would say less than what was measured
                axes.set_xticks(places, [f"{x:,g}" for x in places])
                axes.set_xticks([], minor=True)
        else:
            plain_ticks(axes.xaxis)


def _legend(figure: Figure, axes: Axes, chart: Chart) -> None:
    """Put the names below the chart, unless they already stand under their bars."""
    if chart.bars and not bar_places(chart).grouped:
        return
    handles, labels = axes.get_legend_handles_labels()
    longest = max((len(label) for label in labels), default=0)
    figure.legend(
        handles,
        labels,
        loc="outside lower center",
        ncols=max(1, min(len(labels), 84 // (longest + 6))),  # about as many as fit the width
    )


def _least_positive(chart: Chart) -> float:
    heights = np.concatenate([series.y for series in chart.series])
    positive = heights[np.isfinite(heights) & (heights > 0)]
    return float(positive.min()) if positive.size else 1.0


def _literal(text: str) -> str:
    """Return `text` without marks, and with dollars that Matplotlib does not take for mathematics."""
    return plain(text).replace("$", r"\$")
