import sys
from pathlib import Path

import numpy as np
import pytest
from documents import chart, document, series

from belated.errors import BelatedError
from belated_studies.reports.static import chart_figure, write_figures
from belated_studies.reports.style import bar_places, styles

pytest.importorskip("matplotlib")


def test_every_chart_is_written_as_png_and_pdf_with_the_same_bytes_each_time(tmp_path: Path) -> None:
    made = document(
        chart(series("a", 1, 2, 3, spread=0.5), series("b", np.nan, 1, 2, dashed=True), level=("best", 3.5), name="l"),
        chart(series("a", 1, 2, spread=0.5), series("b", 2, 3), bars=True, name="b"),
    )
    write_figures(made, tmp_path / "one")
    write_figures(made, tmp_path / "two")
    files = sorted(file.name for file in (tmp_path / "one").iterdir())
    assert files == ["b.pdf", "b.png", "l.pdf", "l.png"]
    for name in files:
        content = (tmp_path / "one" / name).read_bytes()
        assert content.startswith(b"\x89PNG" if name.endswith("png") else b"%PDF")
        assert content == (tmp_path / "two" / name).read_bytes()
        assert b"CreationDate" not in content


def test_a_name_has_the_same_colour_in_every_chart_and_dashes_where_asked() -> None:
    one = chart(series("a", 1, 2), series("b", 1, 2), name="one")
    two = chart(series("b", 1, 2, dashed=True), series("c", 1, 2), name="two")
    drawn = styles(document(one, two))
    lines = [chart_figure(each, drawn).axes[0].get_lines() for each in (one, two)]
    assert lines[0][1].get_color() == lines[1][0].get_color() == drawn["b"].colour
    assert [line.get_linestyle() for line in lines[1]] == ["--", "-"]
    assert len({style.colour for style in drawn.values()}) == 3


def test_few_places_of_a_logarithmic_axis_have_ticks_of_their_own() -> None:
    made = chart(series("a", 1.0, 2.0, 3.0), log=True)
    axes = chart_figure(made, styles(document(made))).axes[0]
    places = [x for x in made.series[0].x.tolist() if x > 0]
    assert axes.get_xticks().tolist() == places
    assert [each.get_text() for each in axes.get_xticklabels()] == [f"{x:g}" for x in places]


def test_logarithmic_axes_survive_zeros_and_bands_below_zero() -> None:
    made = chart(series("a", 0.0, 1.0, 100.0, spread=2.0), log=True)
    axes = chart_figure(made, styles(document(made))).axes[0]
    assert (axes.get_xscale(), axes.get_yscale()) == ("log", "log")
    assert 0.1 < axes.get_ylim()[0] <= 1.0


def test_the_level_is_drawn_and_labelled() -> None:
    made = chart(series("a", 1, 2), level=("optimum", 5.0))
    axes = chart_figure(made, styles(document(made))).axes[0]
    assert [text.get_text() for text in axes.texts] == ["optimum"]
    assert axes.get_ylim()[1] > 5.0


def test_bars_that_are_alone_stand_over_their_names() -> None:
    alone = chart(series("a", 1), series("b", 3, spread=1), bars=True)
    assert not bar_places(alone).grouped
    figure = chart_figure(alone, styles(document(alone)))
    assert [label.get_text() for label in figure.axes[0].get_xticklabels()] == ["a", "b"]
    assert figure.legends == []


def test_many_bars_are_a_histogram_over_numbers() -> None:
    many = chart(series("a", *range(40)), bars=True)
    assert bar_places(many).categories is None
    axes = chart_figure(many, styles(document(many))).axes[0]
    assert axes.get_xlim()[0] < 1 < 40 < axes.get_xlim()[1]
    assert len(axes.get_xticks()) < 12


def test_dollars_are_not_mathematics_and_marks_are_dropped() -> None:
    made = chart(series("`a`", 1, 2))
    axes = chart_figure(made, styles(document(made))).axes[0]
    assert axes.get_title(loc="left") == r"Cost in \$ and \$"
    assert axes.get_lines()[0].get_label() == "a"


def test_without_matplotlib_the_error_names_the_remedy(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    with pytest.raises(BelatedError, match=r"pip install 'belated\[plots\]'"):
        write_figures(document(chart(series("a", 1, 2))), tmp_path)
