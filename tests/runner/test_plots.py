"""Pictures of results: what is drawn is what the rows say."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from typing import Any

import numpy as np
import polars as pl
import pytest
from matplotlib import pyplot
from matplotlib.axes import Axes

from belated import InvalidInputError, Results, UnknownNameError
from belated._util.plot_style import LINE_STYLES, PALETTE
from belated.errors import MissingExtraError
from belated.evaluation import bootstrap

EPISODES, SEEDS = 80, 4
METHODS = ("plot_regret", "plot_value", "plot_returns", "plot_delays")


@pytest.fixture(autouse=True)
def closed() -> Iterator[None]:
    yield
    pyplot.close("all")


def made(*, environments: int = 1, delays: int = 1, agents: int = 2, unlike: bool = False) -> Results:
    """Return rows of random numbers; delays are the same for all agents, unless they are `unlike`."""
    rng, late = np.random.default_rng(0), np.random.default_rng(1).integers(0, 9, (SEEDS, EPISODES))
    frames = []
    for e in range(environments):
        for d in range(delays):
            for a in range(agents):
                for s in range(SEEDS):
                    value = rng.uniform(0.0, 10.0, EPISODES)
                    waited = pl.Series(late[s] + d + (a if unlike else 0))
                    frames.append(
                        pl.DataFrame(
                            {
                                "environment": f"env-{e}",
                                "delay_distribution": f"delay-{d}",
                                "agent": f"agent-{a}",
                                "seed": s,
                                "episode": np.arange(EPISODES),
                                "delay": waited.set(waited == 3, None),
                                "value": value,
                                "optimal": 10.0,
                                "sampled_return": value - 1.0,
                                "regret": np.cumsum(10.0 - value),
                            }
                        )
                    )
    return Results(pl.concat(frames))


def curves(axes: Axes) -> dict[str, Any]:
    return {str(line.get_label()): line for line in axes.lines}


def test_regret_has_a_curve_with_its_band_for_each_agent() -> None:
    results = made()
    axes = results.plot_regret()
    assert list(curves(axes)) == ["agent-0", "agent-1"]
    assert (axes.get_xlabel(), axes.get_ylabel()) == ("episode", "cumulative regret")
    assert axes.get_title(loc="left") == "env-0, delay-0"
    for i, (line, band) in enumerate(zip(axes.lines, axes.collections, strict=True)):
        expected = bootstrap(results.regret(agent=f"agent-{i}"))
        np.testing.assert_array_equal(line.get_xdata(), np.arange(1, EPISODES + 1))
        np.testing.assert_allclose(np.asarray(line.get_ydata()), expected.value)
        outline = band.get_paths()[0].vertices
        assert {round(float(y), 9) for y in expected.low} <= {round(float(y), 9) for y in np.asarray(outline)[:, 1]}
        assert {round(float(y), 9) for y in expected.high} <= {round(float(y), 9) for y in np.asarray(outline)[:, 1]}


def test_what_is_drawn_on_given_axes_stays_there() -> None:
    results = made()
    figure, (left, right) = pyplot.subplots(1, 2)
    assert results.plot_regret(left) is left
    assert results.plot_value(right) is right
    assert len(pyplot.get_fignums()) == 1
    assert figure.legends == []
    legend = left.get_legend()
    assert legend is not None
    assert [text.get_text() for text in legend.get_texts()] == ["agent-0", "agent-1"]


@pytest.mark.parametrize(("method", "column"), [("plot_value", "value"), ("plot_returns", "sampled_return")])
def test_values_and_returns_are_moving_averages_below_the_optimum(method: str, column: str) -> None:
    results = made()
    axes = getattr(results, method)(window=8)
    assert list(curves(axes)) == ["agent-0", "agent-1", "optimal value"]
    assert axes.get_ylabel().endswith(", mean of 8 episodes")
    rows = results.array(column, agent="agent-1")
    averages = np.stack([rows[:, k - 7 : k + 1].mean(axis=1) for k in range(7, EPISODES)], axis=1)
    np.testing.assert_array_equal(curves(axes)["agent-1"].get_xdata(), np.arange(8, EPISODES + 1))
    np.testing.assert_allclose(curves(axes)["agent-1"].get_ydata(), averages.mean(axis=0))
    assert set(curves(axes)["optimal value"].get_ydata()) == {10.0}


def test_delays_show_the_share_that_has_arrived() -> None:
    results = made(delays=2)
    axes = results.plot_delays(log="")
    assert list(curves(axes)) == ["delay-0", "delay-1"], "one for all agents, who meet the same delays"
    rows = results.array("delay", agent="agent-0", delay="delay-1")
    x, share = curves(axes)["delay-1"].get_data()
    np.testing.assert_array_equal(x, np.arange(10))
    np.testing.assert_allclose(share, [np.mean(rows <= late) for late in x])  # nan, never, is not <= anything
    assert share[-1] < 1.0


def test_delays_that_depend_on_the_agent_have_a_curve_each() -> None:
    assert list(curves(made(unlike=True).plot_delays())) == ["delay-0, agent-0", "delay-0, agent-1"]


def test_delays_end_with_the_run() -> None:
    results = made()
    longer = Results(results.frame.with_columns(delay=pl.col("delay") * 1000))
    x, share = curves(longer.plot_delays())["delay-0"].get_data()
    assert x[-1] == EPISODES
    assert share[-1] < 0.3


def test_colours_tell_agents_apart_and_line_styles_delays() -> None:
    lines = curves(made(delays=2).plot_regret())
    assert list(lines) == [f"agent-{a}, delay-{d}" for d in range(2) for a in range(2)]
    assert [line.get_color() for line in lines.values()] == [PALETTE[0], PALETTE[1]] * 2
    assert [line.get_linestyle() for line in lines.values()] == [LINE_STYLES[0]] * 2 + [LINE_STYLES[1]] * 2


def test_markers_tell_agents_of_one_colour_apart_where_line_styles_are_delays() -> None:
    lines = curves(made(delays=2, agents=9).plot_regret())
    looks = {(line.get_color(), line.get_linestyle(), line.get_marker()) for line in lines.values()}
    assert len(looks) == len(lines) == 18


def test_colours_tell_the_delays_of_one_agent_apart() -> None:
    axes = made(delays=2, agents=1).plot_regret()
    assert [(name, line.get_color(), line.get_linestyle()) for name, line in curves(axes).items()] == [
        ("delay-0", PALETTE[0], "-"),
        ("delay-1", PALETTE[1], "-"),
    ]
    assert axes.get_title(loc="left") == "env-0, agent-0"


@pytest.mark.parametrize("method", METHODS)
def test_logarithmic_axes(method: str) -> None:
    axes = getattr(made(), method)(log="xy")
    assert (axes.get_xscale(), axes.get_yscale()) == ("symlog", "log")
    axes.figure.canvas.draw()
    labels = [text.get_text() for text in axes.get_xticklabels()]
    assert "1" in labels, "numbers are written in full"


def test_an_environment_among_several_is_named() -> None:
    results = made(environments=2)
    for method in METHODS:
        with pytest.raises(InvalidInputError, match="environment must be given, since there are several: env-0, env-1"):
            getattr(results, method)()
    assert results.plot_regret(environment="env-1").get_title(loc="left") == "env-1, delay-0"


def test_what_cannot_be_drawn_is_refused_and_leaves_no_figure() -> None:
    results = made()
    with pytest.raises(UnknownNameError, match="log must be one of"):
        results.plot_regret(log="z")
    with pytest.raises(UnknownNameError, match="did you mean 'delay-0'"):
        results.plot_regret(delay="delay0")
    with pytest.raises(InvalidInputError, match="window must be"):
        results.plot_value(window=0)
    unknown = Results(results.frame.with_columns(value=pl.lit(None, pl.Float64)))
    with pytest.raises(InvalidInputError, match=r"value is unknown .* plot_returns"):
        unknown.plot_value()
    assert pyplot.get_fignums() == []


def test_returns_are_drawn_where_no_optimum_is_known() -> None:
    unknown = Results(made().frame.with_columns(optimal=pl.lit(None, pl.Float64)))
    assert list(curves(unknown.plot_returns())) == ["agent-0", "agent-1"]


@pytest.mark.parametrize("method", METHODS)
def test_without_matplotlib_it_is_said_what_to_install(method: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    message = r"^this needs matplotlib, which is not installed: pip install 'belated\[plots\]'$"
    with pytest.raises(MissingExtraError, match=message):
        getattr(made(), method)()
