import sys
from pathlib import Path

import numpy as np
import pytest

from belated.errors import BelatedError, InvalidInputError
from belated.reports.document import Chart, Document, Section, Series
from belated.reports.static import chart_figure, write_figures
from belated.reports.style import bar_places, styles

pytest.importorskip("matplotlib")


def series(name: str, *heights: float, spread: float | None = None, dashed: bool = False) -> Series:
    y = np.array(heights)
    low, high = (y - spread, y + spread) if spread is not None else (None, None)
    return Series(name=name, x=np.arange(1.0, 1 + y.size), y=y, low=low, high=high, dashed=dashed)


def chart(
    *drawn: Series, bars: bool = False, log: bool = False, level: tuple[str, float] | None = None, name: str = "c"
) -> Chart:
    return Chart(
        id=name,
        title="Cost in $ and $",
        caption="",
        x_label="episode",
        y_label="regret",
        series=drawn,
        bars=bars,
        log_x=log,
        log_y=log,
        level=level,
    )


def document(*charts: Chart) -> Document:
    return Document(title="t", summary=[], facts={}, sections=[Section(id="s", title="s", charts=charts)])


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


def test_more_names_than_colours_get_other_lines_and_hatches() -> None:
    many = chart(*(series(f"agent {i}", 1, 2) for i in range(9)))
    drawn = list(styles(document(many)).values())
    assert len({(style.colour, style.line) for style in drawn}) == 9
    assert len({(style.colour, style.hatch) for style in drawn}) == 9


def test_names_that_never_meet_share_a_colour_before_one_is_hatched() -> None:
    agents = chart(*(series(f"agent {i}", 1, 2) for i in range(6)), name="agents")
    laws = [chart(series(f"law {i}", 1, 2), name=f"law-{i}") for i in range(3)]
    drawn = styles(document(agents, *laws))
    assert {style.hatch for style in drawn.values()} == {""}
    assert len({drawn[f"law {i}"].colour for i in range(3)}) == 3


def test_more_names_in_one_chart_than_styles_are_still_drawn() -> None:
    many = chart(*(series(f"agent {i}", 1, 2) for i in range(30)))
    assert len(styles(document(many))) == 30


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


def test_bars_stand_in_categories_by_their_x() -> None:
    places = bar_places(chart(series("a", 1, 2), series("b", 3), bars=True))
    assert places.categories == ["1", "2"]
    assert [centres.tolist() for centres in places.centres] == [[0, 1], [0]]


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


def test_ragged_series_and_bars_of_one_name_are_refused(tmp_path: Path) -> None:
    ragged = Series(name="a", x=np.arange(3.0), y=np.arange(2.0))
    with pytest.raises(InvalidInputError, match=r"y of 'a' in chart 'c' must have shape \(3,\)"):
        write_figures(document(chart(ragged)), tmp_path)
    half = Series(name="a", x=np.arange(2.0), y=np.arange(2.0), low=np.arange(2.0))
    with pytest.raises(InvalidInputError, match="both low and high"):
        write_figures(document(chart(half)), tmp_path)
    with pytest.raises(InvalidInputError, match="different names"):
        write_figures(document(chart(series("a", 1), series("a", 2), bars=True)), tmp_path)


def test_without_matplotlib_the_error_names_the_remedy(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    with pytest.raises(BelatedError, match=r"pip install 'belated\[plots\]'"):
        write_figures(document(chart(series("a", 1, 2))), tmp_path)
