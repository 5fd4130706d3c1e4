"""What pictures share: style only while drawing, scales, thinned points."""

from __future__ import annotations

import sys
from pathlib import Path

import matplotlib.style
import numpy as np
import pytest
from matplotlib.figure import Figure

from belated._util.plot_style import PALETTE, drawing, save_figure, scale, thin
from belated.errors import MissingExtraError


def test_the_style_lasts_while_drawing() -> None:
    before = matplotlib.rcParams["axes.spines.top"]
    with drawing() as kind:
        assert kind is Figure
        assert not matplotlib.rcParams["axes.spines.top"]
    assert matplotlib.rcParams["axes.spines.top"] == before


def test_the_style_has_the_colours_of_the_library() -> None:
    with matplotlib.style.context("belated.figure"):
        cycle = matplotlib.rcParams["axes.prop_cycle"].by_key()["color"]
    assert [colour.removeprefix("#") for colour in cycle] == [colour.removeprefix("#") for colour in PALETTE]


def test_without_matplotlib_it_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    with pytest.raises(MissingExtraError, match=r"pip install 'belated\[plots\]'"), drawing():
        pass


@pytest.mark.parametrize("log", ["", "x", "y", "xy"])
def test_numbers_are_written_in_full(log: str) -> None:
    axes = Figure().subplots()
    axes.plot([0, 10, 20_000], [1, 10, 30_000])
    scale(axes, log)
    assert (axes.get_xscale(), axes.get_yscale()) == (
        "symlog" if "x" in log else "linear",
        "log" if "y" in log else "linear",
    )
    for axis in (axes.xaxis, axes.yaxis):
        assert axis.get_major_formatter()(10_000) == "10,000"


@pytest.mark.parametrize("log", [False, True])
@pytest.mark.parametrize("length", [1, 2, 250, 251, 100_000])
def test_thinned_points_keep_both_ends(length: int, log: bool) -> None:
    points = thin(length, log=log)
    assert points[0] == 0
    assert points[-1] == length - 1
    assert points.size <= 250
    assert (np.diff(points) > 0).all()
    if length <= 250 and not log:
        assert points.size == length


def test_a_letter_without_a_picture_is_no_warning(tmp_path: Path) -> None:
    figure = Figure()
    figure.suptitle("a die: 🎲")
    save_figure(figure, tmp_path / "die.png")
    assert (tmp_path / "die.png").exists()
