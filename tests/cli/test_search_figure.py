"""The picture of a search: a panel for each agent, survivors and winner marked."""

from __future__ import annotations

import builtins
from pathlib import Path
from typing import Any

import pytest

import belated
from belated._cli.search_figure import search_figure
from belated._util.plot_style import MissingMatplotlibError, save_figure
from belated.runner import Outcome, Rung, Search, Space, tune

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
    real = builtins.__import__

    def without(name: str, *rest: Any, **named: Any) -> Any:
        if name.startswith("matplotlib"):
            raise ImportError(name)
        return real(name, *rest, **named)

    monkeypatch.setattr(builtins, "__import__", without)
    with pytest.raises(MissingMatplotlibError, match=r"pip install 'belated\[plots\]'"):
        search_figure(outcome)
