"""Figures of learning under delay, a panel for each delay. They need Matplotlib (`pip install "belated[plots]"`)."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Literal

from belated._util.plot_style import INK, LOGS, drawing, drawn
from belated._util.validate import choice
from belated.runner import Results
from belated.runner._plots import KINDS, below, draw, dress, window_of

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_COLUMNS = 3

Panel = tuple[str, str]


def panel_figure(
    results: Results, kind: str, environment: str | None = None, delay: str | None = None, log: str = ""
) -> Figure:
    """Return one `kind` of picture, "regret", "value", "returns" or "delays", a panel for each environment and delay.

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
    figure.set_layout_engine("constrained", w_pad=0.1)  # or the last number of an axis touches the next one's first
    # Only values of the same environment compare.
    shared: Literal["all", "row", "none"] = "all" if environments == 1 else "row" if row_each else "none"
    grid = figure.subplots(rows, columns, squeeze=False, sharey=shared)
    window = window_of(results, kind)
    for i, (axes, (panel, distributions)) in enumerate(zip(grid.flat, panels.items(), strict=False)):
        draw(results, kind, axes, environment=panel[0], delays=distributions, log=log, window=window)
        dress(axes, kind, log=log, window=window)
        axes.set_title(panel[1] if environments == 1 and delays > 1 else ", ".join(filter(None, panel)))
        if i % columns:
            axes.set_ylabel("")
        if i + columns < len(panels):  # not the lowest of its column
            axes.set_xlabel("")
    for axes in grid.flat[len(panels) :]:
        axes.remove()
    if environments == 1 and delays > 1:
        figure.suptitle(drawn(next(iter(panels))[0]), x=0.01, horizontalalignment="left", color=INK)
    below(figure)
    return figure


def _panels(results: Results, kind: str, environment: str | None, delay: str | None) -> dict[Panel, list[str]]:
    """Return the distributions that each panel shows: of every environment and delay that is wanted and was played."""
    environments = (
        results.environments if environment is None else [choice("environment", environment, results.environments)]
    )
    delays = results.delays if delay is None else [choice("delay", delay, results.delays)]
    played = {e: [d for d in delays if any(results.has(e, d, a) for a in results.agents)] for e in environments}
    if kind == "delays":
        return {(e, ""): distributions for e, distributions in played.items() if distributions}
    return {(e, d): [d] for e, distributions in played.items() for d in distributions}
