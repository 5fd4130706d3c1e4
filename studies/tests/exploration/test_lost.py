"""Arms and lotteries: the better choice is the random one, and runs are counted that lose it."""

from __future__ import annotations

import pytest

from belated_studies.exploration.lost import problems


def test_the_better_choice_is_the_one_that_is_random() -> None:
    bandit, *lotteries = problems()
    assert bandit.world.optimal_value == pytest.approx(0.6)
    assert [problem.world.optimal_value for problem in lotteries] == pytest.approx([0.6, 0.6])
    assert [problem.bars["poisson-10"].lost for problem in problems()] == [0.005, 0.01, 0.01]
