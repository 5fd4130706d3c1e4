"""The rule of comparison, case by case."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pytest

from belated.evaluation import mean_interval
from belated.types import Floats
from belated_studies.paper import table_2
from belated_studies.paper.comparing import ENOUGH, Comparison, Measured, convergence, verdict
from belated_studies.paper.published import Published
from belated_studies.reports.document import Cell

PUBLISHED = {"psvi": 11.5, "lpsvi": 11.4, "ucbvi": 10.5}


def _measured(values: dict[str, float], rising: tuple[str, ...] = ()) -> dict[str, Measured]:
    return {
        name: Measured(mean_interval(np.array([value, value])), "still rising" if name in rising else "converged")
        for name, value in values.items()
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
    assert verdict("psvi", _measured(values), PUBLISHED, tolerance=0.05) == expected
    assert verdict("psvi", _measured(values, ("psvi",)), PUBLISHED, tolerance=0.05) == "not enough episodes"


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
    found = verdict("psvi", _measured(values, rising), PUBLISHED, tolerance=0.05)
    assert found == expected


def test_the_tolerance_is_relative_to_the_published_number() -> None:
    assert verdict("a", _measured({"a": 1249.0}), {"a": 1000.0}, tolerance=0.25) == "reproduced"
    found = verdict("a", _measured({"a": 1251.0, "b": 1.0}), {"a": 1000.0, "b": 5000.0}, tolerance=0.25)
    assert found == "not reproduced"


def test_a_curve_has_converged_if_its_last_two_tenths_agree_and_it_will_stay() -> None:
    curve = np.ones((1, 100))
    curve[:, -10:] = 1.04
    assert convergence(curve, 5.0, ENOUGH) == "converged"
    assert convergence(curve, 5.0, ENOUGH - 1) == "steady so far"
    assert convergence(curve, 1.05, ENOUGH - 1) == "converged", "there is nothing left to rise to"
    assert convergence(curve, 1.06, ENOUGH - 1) == "steady so far"
    curve[:, -10:] = 1.06
    assert convergence(curve, 1.06, ENOUGH) == "still rising"
    curve[:, -10:] = 0.94
    assert convergence(curve, 1.06, ENOUGH) == "still falling"
    curve[:, :80] = 0.0  # what was before does not count
    curve[:, -10:] = 0.96
    assert convergence(curve, 5.0, ENOUGH) == "converged"


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
    psvi, ucbvi, mine = (comparison.cell(agent, 1, found) for agent in found)
    assert (psvi.published, psvi.published_spread, psvi.verdict) == (10.0, 0.5, "ordering reproduced")
    assert (psvi.note, ucbvi.note) == ("converged, better than published", "converged")
    assert (mine.value, mine.published, mine.verdict, mine.note) == (3.0, None, None, "converged")
    late = comparison.cell("psvi", 1, _measured({"psvi": 12.0, "ucbvi": 4.0}, ("ucbvi",)))
    assert late.note == "converged, but not what its rank depends on, better than published"
    assert comparison.cell("psvi", 1, _measured({"psvi": 12.0, "ucbvi": 4.0}, ("psvi",))).note == "still rising"


class Rows:
    """Values of one agent, and the optimum, as results give them."""

    def __init__(self, values: Floats, optimal: float) -> None:
        self.columns = {"value": values, "optimal": np.full(values.shape, optimal)}
        self.episodes = np.arange(1, values.shape[1] + 1)

    def array(self, column: str, **pick: str) -> Floats:
        return self.columns[column]


def test_a_number_alone_is_compared_where_it_has_a_published_one() -> None:
    theirs = table_2.COMPARISON.published["psvi"]["poisson"]
    pick = {"agent": "psvi", "delay": "poisson", "environment": "x"}

    def alone(values: Floats, other: Mapping[str, str] = pick, optimal: float = 99.0) -> Cell:
        results: Any = Rows(values, optimal)
        return table_2.COMPARISON.alone(results, other)

    near, far = np.full((2, ENOUGH), theirs.value * 1.04), np.full((2, ENOUGH), theirs.value * 1.06)
    found = alone(near)
    assert found.value == pytest.approx(theirs.value * 1.04)
    assert (found.published, found.verdict, found.note) == (theirs.value, "reproduced", "converged")
    assert alone(near[:, :50]).verdict == "not enough episodes"
    assert alone(near[:, :50], optimal=theirs.value * 1.04).verdict == "reproduced"  # it cannot rise any more
    assert alone(far).verdict is None  # its order among the others is not known
    rising = alone(near * np.linspace(0.1, 1.0, ENOUGH))
    assert (rising.verdict, rising.note) == ("not enough episodes", "still rising")
    for other in ({**pick, "delay": "lomax"}, {**pick, "agent": "lpsvi-plain"}):
        assert alone(near, other).published is None
        assert alone(near, other).verdict is None
