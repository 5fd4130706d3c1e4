"""Lakes that are not slippery: how many steps lead to the goal."""

from __future__ import annotations

import numpy as np

from belated_studies.exploration.lakes import problems


def test_the_goal_is_6_and_14_steps_away() -> None:
    for problem, steps in zip(problems(), (6, 14), strict=True):
        values = problem.world.table.optimal_values()[:, 0]
        assert problem.world.optimal_value == 1.0
        assert int(np.flatnonzero(values[::-1] > 0.5)[0]) == steps
        assert (problem.bars["poisson-10"].steps or 0.0) >= steps
