"""Plots of results on one pair of axes: curves with bands over seeds, and the arrival of feedback."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from belated._util.plot_style import LOGS, discard, drawing, drawn, look, new_figure, scale, thin
from belated._util.validate import choice, integer
from belated.errors import InvalidInputError
from belated.evaluation import Band, bootstrap
from belated.types import Floats, Ints

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from belated.runner._results import Results

POINTS = 400
"""Maximum points of a curve: more are indistinguishable, and each costs a bootstrap."""
WINDOW = 100
"""Maximum number of episodes of a moving average; fewer for short curves."""


@dataclass(frozen=True)
class Kind:
    """One kind of plot."""

    column: str
    label: str
    averaged: bool = False
    """Whether it shows a moving average, and the optimum beside it."""


KINDS = {
    "regret": Kind("regret", "cumulative regret"),
    "value": Kind("value", "value", averaged=True),
    "returns": Kind("sampled_return", "return", averaged=True),
    "delays": Kind("delay", "fraction of feedback that has arrived"),
}


def plot(
    results: Results,
    kind: str,
    axes: Axes | None = None,
    *,
    environment: str | None = None,
    delay: str | None = None,
    log: str = "",
    window: int | None = None,
) -> Axes:
    """Draw one kind of plot on `axes`, or on new ones with a legend below, and return them."""
    choice("log", log, LOGS)
    known = results.environments
    if environment is None and len(known) > 1:
        raise InvalidInputError(f"environment must be given, since there are several: {', '.join(known)}")
    chosen = choice("environment", known[0] if environment is None else environment, known)
    delays = results.delays if delay is None else [choice("delay", delay, results.delays)]
    width = window_of(results, kind, window)
    same = delays if len(delays) == 1 else results.agents if len(results.agents) == 1 else []
    title = ", ".join([chosen, *(same if kind != "delays" else [])])

    def onto(axes: Axes) -> None:
        draw(results, kind, axes, environment=chosen, delays=delays, log=log, window=width)
        dress(axes, kind, log=log, window=width)
        axes.set_title(drawn(title), loc="left")

    if axes is not None:
        onto(axes)
        axes.legend()
        return axes
    with drawing() as figures:
        made = new_figure()
        try:
            onto(made)
        except BaseException:
            discard(made)
            raise
        figure = made.figure
        assert isinstance(figure, figures)
        below(figure)
    return made


def window_of(results: Results, kind: str, window: int | None = None) -> int:
    """Return the window of the moving average: by default a 40th of the rows and at most 100; 1 for sums."""
    if not KINDS[kind].averaged:
        return 1
    rows = results.frame["episode"].n_unique()
    return max(1, min(WINDOW, rows // 40)) if window is None else integer("window", window, at_least=1, at_most=rows)


def draw(
    results: Results, kind: str, axes: Axes, *, environment: str, delays: Sequence[str], log: str, window: int
) -> None:
    """Draw the curves of all agents under `delays`: colours for agents, line styles for delays.

    For one agent under several delays, colours are for the delays. Beyond the number of colours, markers are added.
    """
    if kind == "delays":
        _draw_arrivals(results, axes, environment, delays, log)
        return
    optimal: list[float] = []
    alone = len(delays) > 1 and len(results.agents) == 1
    played = [(delay, agent) for delay in delays for agent in results.agents if results.has(environment, delay, agent)]
    for delay, agent in played:
        pick = {"agent": agent, "delay": delay, "environment": environment}
        i = delays.index(delay) if alone else results.agents.index(agent)
        line = None if alone or len(delays) == 1 else delays.index(delay)
        label = delay if alone else agent if len(delays) == 1 else f"{agent}, {delay}"
        episodes, band = curve(results, kind, pick, window=window, log=log)
        _draw_curve(axes, episodes, band, label, look(i, line), log)
        if KINDS[kind].averaged and "optimal" in results.frame.columns:
            optimal.append(float(results.array("optimal", **pick).mean()))
    if optimal and np.isfinite(optimal).all():
        axes.axhline(float(np.mean(optimal)), color="black", linestyle="--", linewidth=1.2, label="optimal value")


def curve(results: Results, kind: str, pick: dict[str, str], *, window: int, log: str) -> tuple[Ints, Band]:
    """Return the episodes, from 1, and the mean over seeds of one agent's curve with its band."""
    rows = results.regret(**pick) if kind == "regret" else results.array(KINDS[kind].column, **pick)
    if not np.isfinite(rows).all():
        raise InvalidInputError(
            f"{KINDS[kind].column} is unknown for {', '.join(pick.values())}, whose environment is a simulator; "
            "plot_returns shows the observed returns"
        )
    if window > 1:
        rows = np.lib.stride_tricks.sliding_window_view(rows, window, axis=1)
    points = thin(rows.shape[1], POINTS, log="x" in log)
    chosen: Floats = rows[:, points].mean(axis=-1) if window > 1 else rows[:, points]
    return results.episodes[points + window - 1], bootstrap(chosen)


def _draw_curve(axes: Axes, x: Ints, band: Band, label: str, style: dict[str, Any], log: str, **more: Any) -> None:
    axes.plot(x, band.value, label=drawn(label), drawstyle="steps-post" if more else "default", **style)
    if band.seeds > 1:
        # A logarithmic axis cannot show a band that reaches zero: it is cut at the lowest point of the curve.
        floor = np.min(band.value[band.value > 0], initial=np.inf) if "y" in log else -np.inf
        low = np.maximum(band.low, floor)
        axes.fill_between(x, low, band.high, color=style["color"], alpha=0.18, linewidth=0, **more)


def _draw_arrivals(results: Results, axes: Axes, environment: str, delays: Sequence[str], log: str) -> None:
    """Draw the fraction of feedback that has arrived within n episodes, one curve per distribution.

    Agents face the same delays, so there is one curve for all, unless the delay depends on the agent's actions. Curves
    end at the longest delay, or with the run: feedback after its last episode is as good as lost.
    """
    longest = min(int(results.frame["delay"].max() or 1), int(results.episodes[-1]))  # type: ignore[arg-type]
    points, place = thin(longest + 1, POINTS, log="x" in log), 0
    for delay in delays:
        agents = [agent for agent in results.agents if results.has(environment, delay, agent)]
        found = [results.array("delay", agent=agent, delay=delay, environment=environment) for agent in agents]
        same = all(np.array_equal(one, found[0], equal_nan=True) for one in found)
        for agent, rows in [("", found[0])] if same else zip(agents, found, strict=True):
            ordered = np.sort(rows, axis=1)  # feedback that never arrives is nan, and sorted last
            share = np.stack([np.searchsorted(one, points, side="right") for one in ordered]) / rows.shape[1]
            label = ", ".join(filter(None, [delay, agent]))
            _draw_curve(axes, points, bootstrap(share), label, look(place), log, step="post")
            place += 1


def dress(axes: Axes, kind: str, *, log: str, window: int) -> None:
    axes.set_xlabel("delay in episodes" if kind == "delays" else "episode")
    axes.set_ylabel(KINDS[kind].label + (f", mean of {window} episodes" if window > 1 else ""))
    # Setting limits would keep axes that share a scale from growing with each other's curves.
    if "y" not in log:
        axes.update_datalim([(1.0, 0.0)])
    axes.margins(x=0)
    scale(axes, log)
    axes.autoscale_view()


def below(figure: Figure) -> None:
    """Put one legend for all axes of `figure` below them, in as many rows as it needs."""
    entries: dict[str, Any] = {}
    for axes in figure.axes:
        for line, label in zip(*axes.get_legend_handles_labels(), strict=True):
            entries.setdefault(str(label), line)
    key, letter = 0.6, 0.085  # inches per entry, and per letter of its label
    rows = int(np.ceil(sum(key + letter * len(label) for label in entries) / figure.get_figwidth()))
    figure.legend(
        list(entries.values()),
        list(entries),
        loc="outside lower center",
        ncols=int(np.ceil(len(entries) / max(rows, 1))),
        columnspacing=1.5,
        handlelength=2.4,
        fontsize="medium",
        frameon=False,
    )
