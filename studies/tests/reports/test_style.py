from documents import chart, document, opened, series

from belated_studies.reports.style import bar_places, styles


def test_more_names_than_colours_get_other_lines_and_hatches() -> None:
    many = chart(*(series(f"agent {i}", 1, 2) for i in range(9)))
    drawn = list(styles(document(many)).values())
    assert len({(style.colour, style.line) for style in drawn}) == 9
    assert len({(style.colour, style.hatch) for style in drawn}) == 9
    assert [style.marker for style in drawn] == [""] * 7 + ["o"] * 2
    assert [style.curve["color"] for style in drawn] == [style.colour for style in drawn]


def test_names_that_never_meet_share_a_colour_before_one_is_hatched() -> None:
    agents = chart(*(series(f"agent {i}", 1, 2) for i in range(6)), name="agents")
    distributions = [chart(series(f"distribution {i}", 1, 2), name=f"distribution-{i}") for i in range(3)]
    drawn = styles(document(agents, *distributions))
    assert {style.hatch for style in drawn.values()} == {""}
    assert len({drawn[f"distribution {i}"].colour for i in range(3)}) == 3


def test_more_names_in_one_chart_than_styles_are_still_drawn() -> None:
    many = chart(*(series(f"agent {i}", 1, 2) for i in range(30)))
    assert len(styles(document(many))) == 30


def test_bars_stand_in_categories_by_their_x() -> None:
    places = bar_places(chart(series("a", 1, 2), series("b", 3), bars=True))
    assert places.categories == ["1", "2"]
    assert [centres.tolist() for centres in places.centres] == [[0, 1], [0]]


def test_bars_stand_over_the_names_they_are_given() -> None:
    made = opened().opening
    assert made is not None
    places = bar_places(made.charts[0])
    assert (places.categories, places.grouped) == (["slow", "fast"], True)


def test_an_opening_leaves_the_styles_of_the_sections_as_they_are() -> None:
    plain, with_opening = (styles(each(chart(series("a", 1), series("b", 1)))) for each in (document, opened))
    assert {name: with_opening[name] for name in plain} == plain
    assert "theirs" in with_opening
