from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from matplotlib.figure import Figure

import belated
from belated._cli.figures import panel_figure, search_figure
from belated._util.plot_style import LINE_STYLES, PALETTE, save_figure
from belated.errors import BelatedError, MissingExtraError, UnknownNameError
from belated.runner import Outcome, Results, Rung, Search, Space, tune


def made(
    *, environments: int = 1, delays: int = 1, agents: int = 2, seeds: int = 3, episodes: int = 60, step: float = 0.5
) -> Results:
    """Return results in which agent i loses i + 1 an episode under the first delay, and `step` more a further one."""
    frames = [
        pl.DataFrame(
            {
                "environment": f"env-{e}",
                "delay_distribution": f"delay-{d}",
                "agent": f"agent-{a}",
                "seed": s,
                "episode": np.arange(episodes),
                "value": np.full(episodes, 99.0 - a - step * d - 0.1 * s),
                "optimal": np.full(episodes, 100.0),
            }
        )
        for e in range(environments)
        for d in range(delays)
        for a in range(agents)
        for s in range(seeds)
    ]
    return Results(pl.concat(frames))


def lines(axes: Any) -> dict[str, Any]:
    return {line.get_label(): line for line in axes.lines}


def legend(figure: Figure) -> list[str]:
    return [text.get_text() for text in figure.legends[0].get_texts()]


def test_regret_has_a_line_and_a_band_for_each_agent() -> None:
    figure = panel_figure(made(), "regret")
    (axes,) = figure.axes
    assert list(lines(axes)) == ["agent-0", "agent-1"] == legend(figure)
    assert len(axes.collections) == 2
    assert (axes.get_xlabel(), axes.get_ylabel()) == ("episode", "cumulative regret")
    assert axes.get_title(loc="left") == "env-0, delay-0"
    episodes, regret = lines(axes)["agent-1"].get_data()
    np.testing.assert_array_equal(episodes, np.arange(1, 61))
    np.testing.assert_allclose(regret, 2.1 * episodes)  # a loss of 2.0, 2.1 and 2.2 in the three seeds
    band = axes.collections[1].get_paths()[0].get_extents()
    assert (band.ymin, band.ymax) == pytest.approx((2.0, 2.2 * 60))


def test_one_seed_has_no_band() -> None:
    (axes,) = panel_figure(made(seeds=1), "regret").axes
    assert len(axes.lines) == 2
    assert len(axes.collections) == 0


def test_long_curves_are_thinned_but_keep_both_ends() -> None:
    (axes,) = panel_figure(made(agents=1, episodes=5000), "regret").axes
    episodes, regret = (np.asarray(values) for values in axes.lines[0].get_data())
    assert episodes.size == 400
    assert (episodes[0], episodes[-1]) == (1, 5000)
    assert regret[-1] == pytest.approx(1.1 * 5000)


def test_value_is_a_moving_average_below_the_dashed_optimum() -> None:
    results = made(agents=1, seeds=1, episodes=80)
    rising = results.frame.with_columns(value=pl.col("episode").cast(pl.Float64))
    figure = panel_figure(Results(rising), "value")
    (axes,) = figure.axes
    curve, optimum = axes.lines
    episodes, values = (np.asarray(data) for data in curve.get_data())
    np.testing.assert_array_equal(episodes, np.arange(2, 81))  # a window of two: none ends at the first episode
    np.testing.assert_allclose(values, episodes - 1.5)
    assert (optimum.get_linestyle(), optimum.get_label()) == ("--", "optimal value")
    assert np.unique(optimum.get_ydata()) == [100.0]
    assert axes.get_ylabel() == "value, mean of 2 episodes"
    assert legend(figure) == ["agent-0", "optimal value"]


def test_a_panel_for_each_delay_with_one_scale_that_holds_every_curve() -> None:
    figure = panel_figure(made(delays=3, step=50.0), "regret")
    assert [axes.get_title(loc="left") for axes in figure.axes] == ["delay-0", "delay-1", "delay-2"]
    assert figure.get_suptitle() == "env-0"
    limits = {axes.get_ylim() for axes in figure.axes}
    assert len(limits) == 1
    (low, high) = limits.pop()
    highest = max(float(np.max(line.get_ydata())) for axes in figure.axes for line in axes.lines)
    assert low <= 0.0 < highest <= high
    assert legend(figure) == ["agent-0", "agent-1"], "one legend for all panels"


def test_a_row_of_panels_for_each_environment() -> None:
    figure = panel_figure(made(environments=2, delays=2), "value")
    assert [axes.get_title(loc="left") for axes in figure.axes] == [
        f"env-{e}, delay-{d}" for e in range(2) for d in range(2)
    ]
    assert [axes.get_ylabel() != "" for axes in figure.axes] == [True, False, True, False]
    assert [axes.get_xlabel() != "" for axes in figure.axes] == [False, False, True, True]


def test_unused_places_of_the_grid_stay_empty() -> None:
    assert len(panel_figure(made(delays=5), "regret").axes) == 5


def test_choosing_an_environment_and_a_delay() -> None:
    results = made(environments=2, delays=2)
    (axes,) = panel_figure(results, "regret", environment="env-1", delay="delay-0").axes
    assert axes.get_title(loc="left") == "env-1, delay-0"
    assert len(panel_figure(results, "value", environment="env-0").axes) == 2
    with pytest.raises(UnknownNameError, match="did you mean 'delay-0'"):
        panel_figure(results, "regret", delay="delay0")


def test_an_agent_that_was_not_played_everywhere_has_no_line_there() -> None:
    results = made(delays=2)
    partial = results.frame.filter((pl.col("agent") == "agent-1") | (pl.col("delay_distribution") == "delay-0"))
    first, second = panel_figure(Results(partial), "value").axes
    assert list(lines(first)) == ["agent-0", "agent-1", "optimal value"]
    assert list(lines(second)) == ["agent-1", "optimal value"]
    assert lines(first)["agent-1"].get_color() == lines(second)["agent-1"].get_color()


def test_no_two_agents_look_the_same() -> None:
    count = len(PALETTE) + 3
    (axes,) = panel_figure(made(agents=count, seeds=1), "regret").axes
    looks = {(line.get_color(), line.get_linestyle()) for line in axes.lines}
    assert len(looks) == count
    assert axes.lines[0].get_color() == axes.lines[len(PALETTE)].get_color() == PALETTE[0]
    assert axes.lines[len(PALETTE)].get_linestyle() == LINE_STYLES[1]
    assert [line.get_marker() for line in axes.lines[6:8]] == ["None", "o"]


@pytest.mark.parametrize(("kind", "start"), [("png", b"\x89PNG"), ("pdf", b"%PDF"), ("svg", b"<?xml")])
def test_the_same_figure_gives_the_same_bytes(tmp_path: Path, kind: str, start: bytes) -> None:
    for name in ("one", "two"):
        save_figure(panel_figure(made(), "regret"), tmp_path / f"{name}.{kind}")
    content = (tmp_path / f"one.{kind}").read_bytes()
    assert content == (tmp_path / f"two.{kind}").read_bytes()
    assert content.startswith(start)
    assert b"Date" not in content


def test_png_has_200_dots_an_inch(tmp_path: Path) -> None:
    save_figure(panel_figure(made(), "regret"), tmp_path / "figure.png")
    header = (tmp_path / "figure.png").read_bytes()[16:24]
    assert (int.from_bytes(header[:4]), int.from_bytes(header[4:])) == (1280, 800)


def test_unknown_formats_are_refused(tmp_path: Path) -> None:
    with pytest.raises(UnknownNameError, match="'png', 'pdf', 'svg', got 'gif'"):
        save_figure(panel_figure(made(), "regret"), tmp_path / "figure.gif")
    assert list(tmp_path.iterdir()) == []


def test_without_matplotlib_the_error_says_how_to_get_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    for kind in ("regret", "value"):
        with pytest.raises(BelatedError, match=r"pip install 'belated\[plots\]'"):
            panel_figure(made(), kind)


def test_figures_do_without_pyplot_and_its_global_state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib.pyplot", None)  # importing it would fail
    save_figure(panel_figure(made(), "value"), tmp_path / "figure.png")
    assert (tmp_path / "figure.png").exists()


SPACES = {
    "psvi": Space(belated.DelayedPSVI(), {"draws": [1], "scale": [0.1, 0.5, 2.0, 30.0]}),
    "greedy": Space(belated.EpsilonGreedy(), {"epsilon": [0.0, 0.1, 0.2, 0.3]}),
    "lpsvi": Space(belated.DelayedLPSVI(), {"warm_start": ["episode", "cold"], "steps": [5, 10]}),
    "ucbvi": Space(belated.DelayedUCBVI(), {"bonus": [None, 0.1, 1.0, 3.0]}),
}


def play(folder: Path, environment: belated.FiniteMDP, spaces: dict[str, Space], seeds: list[int]) -> Outcome:
    rungs = [Rung(20, seeds, keep=2), Rung(40, seeds, keep=1)]
    search = Search("small", environment, belated.Poisson(3), spaces, rungs, report_seeds=range(10))
    return tune(search, folder=folder, progress=False)


@pytest.fixture(scope="module")
def outcome(tmp_path_factory: pytest.TempPathFactory) -> Outcome:
    world = belated.RiverSwim(states=4, horizon=8)
    return play(tmp_path_factory.mktemp("search"), world, SPACES, [50, 51])


def test_there_is_a_panel_for_each_agent(outcome: Outcome) -> None:
    panels = search_figure(outcome).axes
    assert [axes.get_title(loc="left") for axes in panels] == list(SPACES)
    assert [axes.get_xlabel() for axes in panels] == ["scale", "epsilon", "warm_start", "bonus"]
    assert [axes.get_xscale() for axes in panels] == ["log", "linear", "linear", "linear"]
    assert {axes.get_yscale() for axes in panels} == {"log"}
    assert [label.get_text() for label in panels[2].get_xticklabels()] == ["episode", "cold"]
    assert [label.get_text() for label in panels[3].get_xticklabels()] == ["None", "0.1", "1.0", "3.0"]


def test_every_row_is_a_point_and_the_winner_a_star(outcome: Outcome) -> None:
    for axes, (label, settings) in zip(search_figure(outcome).axes, outcome.winners.items(), strict=True):
        rows = outcome.table.filter(agent=label)
        heights = [float(point.get_ydata()[0]) for point in axes.lines]  # type: ignore[index, arg-type]
        assert heights == rows["regret"].to_list()
        stars = [point for point in axes.lines if point.get_marker() == "*"]
        filled = [point for point in axes.lines if point.get_markerfacecolor() != "white"]
        assert (len(stars), len(filled)) == (1, 3)
        assert len(axes.collections) == 3  # intervals of the survivors
        place = float(stars[0].get_xdata()[0])  # type: ignore[index, arg-type]
        if isinstance(settings, belated.DelayedPSVI):
            assert place == settings.scale
        if isinstance(settings, belated.DelayedUCBVI):
            assert place == SPACES["ucbvi"].grid["bonus"].index(settings.bonus)


def test_one_seed_has_no_interval_and_no_regret_no_logarithm(tmp_path: Path) -> None:
    still = belated.FiniteMDP([[[1.0], [1.0]]], [[0.5, 0.5]], horizon=2, name="still")
    found = play(tmp_path, still, {"psvi": SPACES["psvi"]}, [50])
    figure = search_figure(found)
    (axes,) = figure.axes
    assert found.table["regret"].to_list() == [0.0] * 6
    assert axes.get_yscale() == "linear"
    assert not axes.collections
    save_figure(figure, tmp_path / "search.png")
    assert (tmp_path / "search.png").stat().st_size > 5_000


def test_the_same_search_gives_the_same_bytes(outcome: Outcome, tmp_path: Path) -> None:
    for name in ("one.svg", "two.svg"):
        save_figure(search_figure(outcome), tmp_path / name)
    assert (tmp_path / "one.svg").read_bytes() == (tmp_path / "two.svg").read_bytes()


def test_without_matplotlib_the_error_says_what_to_install(outcome: Outcome, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    with pytest.raises(MissingExtraError, match=r"pip install 'belated\[plots\]'"):
        search_figure(outcome)
