"""Locks: which ones are played, and that each has an agent that opens it."""

from __future__ import annotations

from belated_studies.exploration.locks import problems


def test_each_lock_pays_one_and_is_compared_with_searched_agents() -> None:
    assert [problem.label for problem in problems()] == ["lock-10", "lock-15", "lock-10-ends", "lock-15-ends"]
    for problem in problems():
        assert problem.world.optimal_value == 1.0
        assert problem.bars["poisson-10"].regret == 1.2
        assert {"psvi", "ucbvi"} <= set(problem.others)
