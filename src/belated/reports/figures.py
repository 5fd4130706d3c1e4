"""Figures of learning under delay. They need Matplotlib, which `pip install "belated[plots]"` brings."""

from __future__ import annotations

import io
import math
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from importlib.resources import as_file, files
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from belated.errors import BelatedError
from belated.evaluation import Band, bootstrap
from belated.reports.document import thin
from belated.runner import Results
from belated.storage import write_atomically
from belated.types import Floats
from belated.validate import choice

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.axis import Axis
    from matplotlib.figure import Figure

#: Okabe and Ito's colours, told apart with every kind of colour vision; black is kept for the optimum.
PALETTE = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#8C8C8C")
#: When the colours run out they start again with the next style.
LINE_STYLES = ("-", "--", ":", "-.")

_POINTS = 400  # more cannot be told apart, and each costs a bootstrap
_WINDOW = 100  # episodes of a moving average, fewer where a curve has not many times as many
_COLUMNS = 3
_LONGEST = 60  # letters of a label
INK = "#333333"
_KEY, _LETTER = 0.5, 0.085  # inches that a legend entry needs, and each letter of its label

#: How to save each format so that the same figure gives the same bytes.
_METADATA: dict[str, dict[str, Any]] = {
    "png": {"Software": None},
    "pdf": {"CreationDate": None, "Producer": None, "Creator": None},
    "svg": {"Date": None, "Creator": None},
}

Panel = tuple[str, str]
Draw = Callable[["Axes", Panel, list[str]], None]


class MissingMatplotlibError(BelatedError):
    """Figures were asked for, but Matplotlib is not installed."""


@contextmanager
def drawing() -> Iterator[type[Figure]]:
    """Set the style for what is drawn meanwhile, and give Matplotlib's `Figure`; without it, say what to install."""
    try:
        from matplotlib import rc_context
        from matplotlib.figure import Figure
    except ImportError:
        raise MissingMatplotlibError("figures need Matplotlib: pip install 'belated[plots]'") from None
    with as_file(files("belated.reports") / "figure.mplstyle") as style, rc_context(fname=style):
        yield Figure


def drawn(label: str) -> str:
    """Return a label as Matplotlib draws it: without mathematics, never hidden, and not longer than a line.

    >>> drawn("$5"), drawn("_x"), len(drawn("x" * 300))
    ('\\\\$5', ' _x', 60)
    """
    short = label if len(label) <= _LONGEST else f"{label[: _LONGEST - 21]}…{label[-20:]}"
    return ("" if short[0] != "_" else " ") + " ".join(short.replace("$", r"\$").split())


def plain_ticks(axis: Axis, most: int = 6, steps: Sequence[float] | None = None) -> None:
    """Write the numbers of an axis in full."""
    from matplotlib.ticker import FuncFormatter, MaxNLocator

    axis.set_major_locator(MaxNLocator(most, steps=steps))
    axis.set_major_formatter(FuncFormatter(lambda number, _: f"{number:,.10g}"))


def regret_figure(results: Results, environment: str | None = None, delay: str | None = None) -> Figure:
    """Return mean cumulative regret against episodes, with a 95% band over seeds, a panel for each delay."""
    styles = _styles(results.agents)

    def draw(axes: Axes, panel: Panel, agents: list[str]) -> None:
        for agent in agents:
            curves = results.regret(agent=agent, environment=panel[0], delay=panel[1])
            points = thin(curves.shape[1], _POINTS)
            _curve(axes, results.episodes[points], bootstrap(curves[:, points]), agent, styles[agent])

    return _figure(_panels(results, environment, delay), draw, "cumulative regret")


def value_figure(results: Results, environment: str | None = None, delay: str | None = None) -> Figure:
    """Return the moving average of the value played, with a 95% band over seeds and the optimum dashed."""
    styles = _styles(results.agents)
    window = max(1, min(_WINDOW, results.frame["episode"].n_unique() // 40))

    def draw(axes: Axes, panel: Panel, agents: list[str]) -> None:
        for agent in agents:
            curves = results.array("value", agent=agent, environment=panel[0], delay=panel[1])
            windows = np.lib.stride_tricks.sliding_window_view(curves, window, axis=1)
            points = thin(windows.shape[1], _POINTS)
            _curve(
                axes,
                results.episodes[points + window - 1],
                bootstrap(windows[:, points].mean(axis=-1)),
                agent,
                styles[agent],
            )
        optimal = results.array("optimal", agent=agents[0], environment=panel[0], delay=panel[1]).mean()
        axes.axhline(float(optimal), color="black", linestyle="--", linewidth=1.2, label="optimal value")

    label = f"value, mean of {window} episodes" if window > 1 else "value"
    return _figure(_panels(results, environment, delay), draw, label)


def save_figure(figure: Figure, path: str | Path) -> None:
    """Write `figure` as PNG (200 dpi), PDF or SVG, by the name's ending; the same figure gives the same bytes."""
    import matplotlib

    file = Path(path)
    kind = choice("the ending of the figure's name", file.suffix.removeprefix(".").lower(), _METADATA)
    content = io.BytesIO()
    # Identifiers inside an SVG are random unless salted, and fonts inside a PDF should be ones that can be edited.
    with matplotlib.rc_context({"svg.hashsalt": "belated", "pdf.fonttype": 42}):
        figure.savefig(content, format=kind, dpi=200, metadata=_METADATA[kind])
    write_atomically(file, content.getvalue())


def _figure(panels: dict[Panel, list[str]], draw: Draw, y_label: str) -> Figure:
    with drawing() as figure:
        return _panel_figure(figure, panels, draw, y_label)


def _panel_figure(kind: type[Figure], panels: dict[Panel, list[str]], draw: Draw, y_label: str) -> Figure:
    environments, delays = (len({panel[i] for panel in panels}) for i in (0, 1))
    row_each = environments > 1 and 1 < delays <= _COLUMNS and len(panels) == environments * delays
    columns = delays if row_each else 2 if len(panels) == 4 else min(len(panels), _COLUMNS)
    rows = math.ceil(len(panels) / columns)
    figure = kind(figsize=(0.6 + 3.3 * columns, 0.8 + 2.7 * rows) if len(panels) > 1 else (6.4, 4.0))
    figure.set_layout_engine("constrained", w_pad=0.1)  # or the last number of an axis touches the next one's first
    # Only values of the same environment compare.
    shared: Literal["all", "row", "none"] = "all" if environments == 1 else "row" if row_each else "none"
    grid = figure.subplots(rows, columns, squeeze=False, sharey=shared)
    for i, (axes, (panel, agents)) in enumerate(zip(grid.flat, panels.items(), strict=False)):
        draw(axes, panel, agents)
        _dress(axes, panel[1] if environments == 1 and delays > 1 else ", ".join(panel))
        if i % columns == 0:
            axes.set_ylabel(y_label)
        if i + columns >= len(panels):  # the lowest of its column
            axes.set_xlabel("episode")
    for axes in grid.flat[len(panels) :]:
        axes.remove()
    if environments == 1 and delays > 1:
        figure.suptitle(drawn(next(iter(panels))[0]), x=0.01, horizontalalignment="left", color=INK)
    _legend(figure)
    return figure


def _panels(results: Results, environment: str | None, delay: str | None) -> dict[Panel, list[str]]:
    """Return the agents of every environment and delay that is wanted and was played."""
    environments = (
        results.environments if environment is None else [choice("environment", environment, results.environments)]
    )
    delays = results.delays if delay is None else [choice("delay", delay, results.delays)]
    played = set(results.frame.select("environment", "delay_law", "agent").unique().iter_rows())
    every = {(e, d): [a for a in results.agents if (e, d, a) in played] for e in environments for d in delays}
    return {panel: agents for panel, agents in every.items() if agents}


def _styles(agents: list[str]) -> dict[str, dict[str, Any]]:
    """Give each agent a colour and a line style that are its own in every figure of the same results."""
    return {
        agent: {
            "color": PALETTE[i % len(PALETTE)],
            "linestyle": LINE_STYLES[i // len(PALETTE) % len(LINE_STYLES)],
        }
        for i, agent in enumerate(agents)
    }


def _curve(axes: Axes, episodes: Floats, band: Band, agent: str, style: dict[str, Any]) -> None:
    axes.plot(episodes, band.value, label=drawn(agent), **style)
    if band.seeds > 1:
        axes.fill_between(episodes, band.low, band.high, color=style["color"], alpha=0.18, linewidth=0)


def _dress(axes: Axes, title: str) -> None:
    axes.set_title(drawn(title))
    # Setting limits would stop axes that share a scale from growing with each other's curves.
    axes.update_datalim([(0.0, 0.0)])
    axes.margins(x=0)
    axes.autoscale_view()
    for axis in (axes.xaxis, axes.yaxis):
        plain_ticks(axis, 5, steps=[1, 2, 2.5, 5, 10])


def _legend(figure: Figure) -> None:
    """Put one legend for all panels below them."""
    entries: dict[str, Any] = {}
    for axes in figure.axes:
        for line, label in zip(*axes.get_legend_handles_labels(), strict=True):
            entries.setdefault(label, line)
    needed = sum(_KEY + _LETTER * len(label) for label in entries)
    rows = math.ceil(needed / figure.get_figwidth())
    figure.legend(
        list(entries.values()),
        list(entries),
        loc="outside lower center",
        ncols=math.ceil(len(entries) / rows),
        columnspacing=1.5,
        handlelength=1.6,
        fontsize="medium",
    )
