"""Dense MDPs: which rewards are sure, and which steps have tables of their own."""

from __future__ import annotations

from belated_studies.exploration.dense_features import problems


def test_tables_differ_by_step_only_where_it_is_said() -> None:
    for problem in problems():
        tables = problem.world.transitions
        same = all((tables[0] == tables[h]).all() for h in range(len(tables)))
        assert same == ("by-step" not in problem.label), problem.label
        assert problem.bars["poisson-10"].regret == 1.2
