"""The rule of comparison, case by case."""

from __future__ import annotations

import numpy as np
import pytest

from belated.evaluation import mean_interval
from belated.studies.paper import table_2
from belated.studies.paper.comparing import ENOUGH, Comparison, Measured, steady, verdict
from belated.studies.paper.published import Published

PUBLISHED = {"psvi": 11.5, "lpsvi": 11.4, "ucbvi": 10.5}


def _measured(values: dict[str, float], rising: tuple[str, ...] = ()) -> dict[str, Measured]:
    return {
        name: Measured(mean_interval(np.array([value, value])), name not in rising) for name, value in values.items()
    }


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        ({"psvi": 11.9, "lpsvi": 11.0, "ucbvi": 10.4}, "reproduced"),
        ({"psvi": 8.0, "lpsvi": 7.0, "ucbvi": 6.0}, "ordering reproduced"),
        ({"psvi": 7.0, "lpsvi": 8.0, "ucbvi": 6.0}, "ordering reproduced"),  # psvi and lpsvi are published as equal
        ({"psvi": 5.0, "lpsvi": 8.0, "ucbvi": 6.0}, "not reproduced"),
        ({"psvi": 6.0, "lpsvi": 8.0, "ucbvi": 6.0}, "not reproduced"),  # a tie is not an order
    ],
)
def test_the_verdict_on_psvi(values: dict[str, float], expected: str) -> None:
    found = _measured(values)
    assert verdict("psvi", found, PUBLISHED, tolerance=0.05, episodes=ENOUGH) == expected
    short = verdict("psvi", found, PUBLISHED, tolerance=0.05, episodes=ENOUGH - 1)
    assert short == ("reproduced" if expected == "reproduced" else "not enough episodes")


@pytest.mark.parametrize(
    ("values", "rising", "expected"),
    [
        ({"psvi": 11.9, "lpsvi": 1.0, "ucbvi": 1.0}, ("psvi",), "not enough episodes"),
        ({"psvi": 11.9, "lpsvi": 1.0, "ucbvi": 1.0}, ("lpsvi", "ucbvi"), "reproduced"),
        ({"psvi": 8.0, "lpsvi": 7.0, "ucbvi": 6.0}, ("ucbvi",), "not enough episodes"),
        ({"psvi": 5.0, "lpsvi": 7.0, "ucbvi": 6.0}, ("ucbvi",), "not enough episodes"),
        ({"psvi": 8.0, "lpsvi": 7.0, "ucbvi": 6.0}, ("lpsvi",), "ordering reproduced"),  # may come in either order
    ],
)
def test_a_curve_that_still_rises_is_not_judged(
    values: dict[str, float], rising: tuple[str, ...], expected: str
) -> None:
    found = verdict("psvi", _measured(values, rising), PUBLISHED, tolerance=0.05, episodes=10**6)
    assert found == expected


def test_the_tolerance_is_relative_to_the_published_number() -> None:
    options = {"tolerance": 0.25, "episodes": 5000}
    assert verdict("a", _measured({"a": 1249.0}), {"a": 1000.0}, **options) == "reproduced"  # type: ignore[arg-type]
    found = verdict("a", _measured({"a": 1251.0, "b": 1.0}), {"a": 1000.0, "b": 5000.0}, **options)  # type: ignore[arg-type]
    assert found == "not reproduced"


def test_a_curve_is_steady_if_its_last_two_tenths_have_the_same_mean() -> None:
    curve = np.ones((1, 100))
    curve[:, -10:] = 1.04
    assert steady(curve)
    curve[:, -10:] = 1.06
    assert not steady(curve)
    curve[:, :80] = 0.0  # what was before does not count
    curve[:, -10:] = 0.96
    assert steady(curve)


def test_the_papers_longest_count_is_what_is_needed() -> None:
    assert ENOUGH == 3694


def test_published_numbers_stand_beside_ours() -> None:
    comparison = Comparison(
        id="t",
        title="T",
        caption="",
        runs={},
        columns={1: ("one", {})},
        published={"psvi": {1: Published(10.0, 0.5)}, "ucbvi": {1: Published(5.0)}},
        statistic=mean_interval,
        tolerance=0.05,
        digits=2,
        more_is_better=True,
    )
    found = _measured({"psvi": 12.0, "ucbvi": 4.0, "mine": 3.0})
    psvi, ucbvi, mine = (comparison.cell(agent, 1, found, 5000) for agent in found)
    assert (psvi.published, psvi.published_spread, psvi.verdict) == (10.0, 0.5, "ordering reproduced")
    assert (psvi.note, ucbvi.note) == ("better than published", "")
    assert (mine.value, mine.published, mine.verdict) == (3.0, None, None)


def test_a_number_alone_is_compared_where_it_has_a_published_one() -> None:
    alone = table_2.COMPARISON.alone
    theirs = table_2.COMPARISON.published["psvi"]["poisson"]
    pick = {"agent": "psvi", "delay": "poisson", "environment": "x"}
    near, far = np.full((2, ENOUGH), theirs.value * 1.04), np.full((2, ENOUGH), theirs.value * 1.06)
    found = alone(pick, near)
    assert found.value == pytest.approx(theirs.value * 1.04)
    assert found.published == theirs.value
    assert found.verdict == alone(pick, near[:, :50]).verdict == "reproduced"
    assert alone(pick, far).verdict is None  # its order among the others is not known
    assert alone(pick, far[:, 1:]).verdict == "not enough episodes"
    rising = near * np.linspace(0.1, 1.0, ENOUGH)
    assert alone(pick, rising).verdict == "not enough episodes"
    for other in ({**pick, "delay": "lomax"}, {**pick, "agent": "lpsvi-plain"}):
        assert alone(other, near).published is None
        assert alone(other, near).verdict is None
