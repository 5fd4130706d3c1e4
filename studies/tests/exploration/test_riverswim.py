"""RiverSwim: bars are a share of the optimum."""

from __future__ import annotations

import pytest

from belated.environments import RiverSwim
from belated_studies.exploration.riverswim import problems


def test_bars_are_a_share_of_the_optimum_at_no_delay_too() -> None:
    short, long = problems()
    for problem, river in ((short, RiverSwim()), (long, RiverSwim(10, 50))):
        assert [bar.value for bar in problem.bars.values()] == pytest.approx([0.97 * river.optimal_value] * 2)
        assert set(problem.bars) == set(problem.delays) == {"none", "poisson-10"}
    assert (set(short.searches.values()), long.world.horizon) == ({"rivers"}, 50)
