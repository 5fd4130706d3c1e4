"""Figures of learning under delay and of searches for settings; they need Matplotlib (`belated[plots]`)."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal

import polars as pl

from belated._util.plot_style import INK, LOGS, PALETTE, drawing, drawn
from belated._util.validate import choice
from belated.runner import Outcome, Results, Rung, Search
from belated.runner._plots import KINDS, below, draw, dress, window_of

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_COLUMNS = 3

Panel = tuple[str, str]


def panel_figure(
    results: Results, kind: str, environment: str | None = None, delay: str | None = None, log: str = ""
) -> Figure:
    """Return a figure of one `kind` ("regret", "value", "returns" or "delays") with a panel per environment and delay.

    Delays of one environment share a panel. `log` names the axes that are logarithmic: "x", "y" or "xy".
    """
    choice("kind", kind, KINDS)
    choice("log", log, LOGS)
    with drawing() as figure:
        return _panel_figure(figure, results, kind, _panels(results, kind, environment, delay), log)


def _panel_figure(make: type[Figure], results: Results, kind: str, panels: dict[Panel, list[str]], log: str) -> Figure:
    environments, delays = (len({panel[i] for panel in panels}) for i in (0, 1))
    row_each = environments > 1 and 1 < delays <= _COLUMNS and len(panels) == environments * delays
    columns = delays if row_each else 2 if len(panels) == 4 else min(len(panels), _COLUMNS)
    rows = math.ceil(len(panels) / columns)
    figure = make(figsize=(0.6 + 3.3 * columns, 0.8 + 2.7 * rows) if len(panels) > 1 else (6.4, 4.0))
    figure.set_layout_engine("constrained", w_pad=0.1)  # keeps tick labels of adjacent panels apart
    # Values are comparable only within an environment.
    shared: Literal["all", "row", "none"] = "all" if environments == 1 else "row" if row_each else "none"
    grid = figure.subplots(rows, columns, squeeze=False, sharey=shared)
    window = window_of(results, kind)
    for i, (axes, (panel, distributions)) in enumerate(zip(grid.flat, panels.items(), strict=False)):
        draw(results, kind, axes, environment=panel[0], delays=distributions, log=log, window=window)
        dress(axes, kind, log=log, window=window)
        axes.set_title(panel[1] if environments == 1 and delays > 1 else ", ".join(filter(None, panel)))
        if i % columns:
            axes.set_ylabel("")
        if i + columns < len(panels):  # not the bottom panel of its column
            axes.set_xlabel("")
    for axes in grid.flat[len(panels) :]:
        axes.remove()
    if environments == 1 and delays > 1:
        figure.suptitle(drawn(next(iter(panels))[0]), x=0.01, horizontalalignment="left", color=INK)
    below(figure)
    return figure


def _panels(results: Results, kind: str, environment: str | None, delay: str | None) -> dict[Panel, list[str]]:
    """Return the delay distributions of each panel, for the selected environments and delays."""
    environments = (
        results.environments if environment is None else [choice("environment", environment, results.environments)]
    )
    delays = results.delays if delay is None else [choice("delay", delay, results.delays)]
    played = {e: [d for d in delays if any(results.has(e, d, a) for a in results.agents)] for e in environments}
    if kind == "delays":
        return {(e, ""): distributions for e, distributions in played.items() if distributions}
    return {(e, d): [d] for e, distributions in played.items() for d in distributions}


_COLUMNS = 3


def search_figure(outcome: Outcome) -> Figure:
    """Return a figure of every candidate's regret or return at every rung, with a panel per agent.

    The horizontal axis is the setting with the most values tried. Candidates that a rung kept are filled and show their
    95 % interval over seeds; the winner is a star.

    >>> import tempfile
    >>> from belated import DelayedPSVI, Poisson, RiverSwim
    >>> from belated.runner import Rung, Search, Space, tune
    >>> spaces = {"psvi": Space(DelayedPSVI(), {"scale": [0.1, 1.0]})}
    >>> search = Search("river", RiverSwim(), Poisson(5), spaces, [Rung(50, [50], keep=1)], report_seeds=range(10))
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     figure = search_figure(tune(search, folder=folder, progress=False))
    >>> figure.axes[0].get_title(loc="left"), figure.axes[0].get_xlabel()
    ('psvi', 'scale')
    """
    with drawing() as kind:
        return _figure(kind, outcome)


def _figure(kind: type[Figure], outcome: Outcome) -> Figure:
    search, spaces = outcome.search, outcome.search.spaces
    columns = 2 if len(spaces) == 4 else min(len(spaces), _COLUMNS)
    rows = -(-len(spaces) // columns)
    size = (6.4, 4.4) if len(spaces) == 1 else (0.6 + 3.3 * columns, 1.2 + 2.9 * rows)
    figure = kind(figsize=size, layout="constrained")
    grid = figure.subplots(rows, columns, squeeze=False, sharey=True)
    log = search.measure == "regret" and bool((outcome.table["regret"] > 0).all())
    for i, (axes, (label, space)) in enumerate(zip(grid.flat, spaces.items(), strict=False)):
        _draw(axes, space.names, outcome.table.filter(pl.col("agent") == label), search)
        _dress(axes, label, log)
        if i % columns == 0:
            axes.set_ylabel("cumulative regret" if search.measure == "regret" else "mean return")
    for axes in grid.flat[len(spaces) :]:
        axes.remove()
    figure.suptitle(drawn(f"{search.name}: {search.environment.label}, {search.delay.label}"), color=INK)
    _legend(figure, search.rungs)
    return figure


def main_setting(names: Sequence[str], points: Sequence[Mapping[str, Any]]) -> str:
    """Return the setting of `names` with the most values tried; the first of several.

    >>> main_setting(["draws", "scale"], [{"draws": 1, "scale": 0.1}, {"draws": 1, "scale": 1.0}])
    'scale'
    """
    return max(names, key=lambda name: len({json.dumps(point[name]) for point in points}))


def _draw(axes: Axes, names: Sequence[str], table: pl.DataFrame, search: Search) -> None:
    points = [json.loads(settings) for settings in table.filter(pl.col("rung") == 0)["settings"]]
    name, measure = main_setting(names, points), search.measure
    places = _places(axes, [point[name] for point in points])
    axes.set_xlabel(name)
    for row in table.iter_rows(named=True):
        x, color = places[row["candidate"]], _color(row["rung"])
        winner = row["kept"] and row["rung"] == len(search.rungs) - 1
        if row["kept"] and row["seeds"] > 1:
            axes.vlines(x, row[f"{measure}_low"], row[f"{measure}_high"], color=color, linewidth=1.5, zorder=2)
        axes.plot(x, row[measure], color=color, zorder=4 if winner else 3, **_marker(row["kept"], winner))


def _places(axes: Axes, values: list[Any]) -> list[float]:
    """Set the horizontal axis and return the place of each value: numbers by size, all else side by side."""
    if not all(isinstance(value, int | float) and not isinstance(value, bool) for value in values):
        names = list(dict.fromkeys(drawn(str(value)) for value in values))
        axes.set_xticks(range(len(names)), names)
        axes.set_xlim(-0.5, len(names) - 0.5)
        return [float(names.index(drawn(str(value)))) for value in values]
    if min(values) > 0 and max(values) > 10 * min(values):
        axes.set_xscale("log")
    return [float(value) for value in values]


def _color(rung: int) -> str:
    return PALETTE[rung % len(PALETTE)]


def _marker(kept: bool, winner: bool) -> dict[str, Any]:
    if winner:
        return {"marker": "*", "markersize": 15, "markeredgecolor": "black", "markeredgewidth": 0.8}
    if kept:
        return {"marker": "o", "markersize": 6.5}
    return {"marker": "o", "markersize": 4.5, "markerfacecolor": "white", "alpha": 0.6}


def _dress(axes: Axes, title: str, log: bool) -> None:
    from matplotlib.ticker import FuncFormatter, LogLocator, NullLocator

    axes.set_title(drawn(title))
    if log:
        axes.set_yscale("log")
        axes.yaxis.set_major_locator(LogLocator(subs=(1, 2, 5)))
        axes.yaxis.set_minor_locator(NullLocator())
    axes.yaxis.set_major_formatter(FuncFormatter(lambda number, _: f"{number:,.10g}"))


def _legend(figure: Figure, rungs: Sequence[Rung]) -> None:
    """Say below the panels what the colours and the markers mean."""
    from matplotlib.lines import Line2D

    colors = [
        Line2D([], [], color=_color(i), linewidth=4, label=f"rung {i}: {rung.episodes:,} episodes, {_seeds(rung)}")
        for i, rung in enumerate(rungs)
    ]
    markers = [
        Line2D([], [], color=INK, linestyle="none", label=label, **_marker(kept, winner))
        for label, kept, winner in (("dropped", False, False), ("kept", True, False), ("winner", True, True))
    ]
    figure.legend(handles=colors, loc="outside lower left")
    figure.legend(handles=markers, loc="outside lower right")


def _seeds(rung: Rung) -> str:
    return f"{len(rung.seeds)} seed{'s' if len(rung.seeds) > 1 else ''}"
