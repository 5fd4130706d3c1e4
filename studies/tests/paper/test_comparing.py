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
from belated_studies.paper.setting import LITERAL, TUNED
from belated_studies.reports.document import Cell

OPTIMAL, EPISODES = 11.96, 5000
RETURN, COUNT = Published(11.0, 0.5), Published(1000.0)


def _measured(value: float, state: str = "converged", episodes: int = EPISODES) -> Measured:
    return Measured(mean_interval(np.array([value, value])), state, OPTIMAL, episodes)


@pytest.mark.parametrize(
    ("value", "printed", "tuned"),
    [
        (11.49, "reproduced", "as published"),
        (10.51, "reproduced", "as published"),
        (10.49, "not reproduced", "worse than published"),
        (11.51, "not reproduced", "better than published"),
        (11.85, "not reproduced", "reaches the optimum"),
    ],
)
def test_a_return_is_compared_by_the_papers_own_margin(value: float, printed: str, tuned: str) -> None:
    assert verdict(LITERAL, _measured(value), RETURN) == printed
    assert verdict(TUNED, _measured(value), RETURN) == tuned
    assert verdict(LITERAL, _measured(value, "still rising"), RETURN) == "cannot be judged"
    assert verdict(LITERAL, _measured(value, "still rising"), RETURN, settled=3000) == printed
    assert verdict(LITERAL, _measured(value, "still rising", 2999), RETURN, settled=3000) == "cannot be judged"


@pytest.mark.parametrize(
    ("value", "printed", "tuned", "rising"),
    [
        (1250, "reproduced", "as published", "cannot be judged"),
        (750, "reproduced", "as published", "cannot be judged"),
        (749, "not reproduced", "better than published", "cannot be judged"),  # it may yet become more
        (1251, "not reproduced", "worse than published", "not reproduced"),  # and never less
    ],
)
def test_a_count_is_compared_by_a_quarter(value: float, printed: str, tuned: str, rising: str) -> None:
    assert verdict(LITERAL, _measured(value), COUNT, count=True) == printed
    assert verdict(TUNED, _measured(value), COUNT, count=True) == tuned
    assert verdict(LITERAL, _measured(value, "still rising"), COUNT, count=True, settled=1000) == rising


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
        published={"psvi": {1: RETURN}},
        settled={"psvi": {1: Published(3000)}},
        statistic=mean_interval,
        digits=2,
    )
    found = comparison.cell(LITERAL, "psvi", 1, _measured(11.2))
    assert (found.published, found.published_spread, found.verdict, found.note) == (11.0, 0.5, "reproduced", "")
    rising = comparison.cell(LITERAL, "psvi", 1, _measured(5.0, "still rising"))
    assert (rising.verdict, rising.note) == ("not reproduced", "still rising")
    mine = comparison.cell(LITERAL, "mine", 1, _measured(3.0))
    assert (mine.value, mine.published, mine.verdict, mine.note) == (3.0, None, None, "not in the paper")


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

    def alone(values: Floats, other: Mapping[str, str] = pick, optimal: float = 99.0, runs: str = "literal") -> Cell:
        results: Any = Rows(values, optimal)
        return table_2.COMPARISON.alone(f"table-2-{runs}", results, other)

    near, far = np.full((2, ENOUGH), theirs.value + 0.8), np.full((2, ENOUGH), theirs.value - 0.9)
    found = alone(near)
    assert found.value == pytest.approx(theirs.value + 0.8)
    assert (found.published, found.verdict, found.note) == (theirs.value, "reproduced", "")
    assert alone(near, runs="tuned").verdict == "as published"
    assert alone(near, optimal=12.3, runs="tuned").verdict == "reaches the optimum"
    assert alone(near[:, :50]).verdict == "cannot be judged"
    assert alone(far).verdict == "not reproduced"
    for other, runs in (
        ({**pick, "delay": "lomax"}, "literal"),
        ({**pick, "agent": "lpsvi-plain"}, "tuned"),
        (pick, "x"),
    ):
        assert alone(near, other, runs=runs).published is None
        assert alone(near, other, runs=runs).verdict is None
