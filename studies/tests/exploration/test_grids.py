"""Grids of MiniGrid: played where the package is, and left out with a sentence where it is not."""

from __future__ import annotations

import pytest

from belated_studies.exploration import grids, worlds


def test_without_the_package_nothing_is_played(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(grids, "has", lambda *modules: False)
    assert grids.problems.__wrapped__() == ()


def test_every_grid_has_a_bar_and_a_table_for_q_learning(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(grids, "has", lambda *modules: True)
    made = grids.problems.__wrapped__()
    assert [problem.bars["poisson-10"].value for problem in made] == [0.90, 0.95, 0.80, 0.80, 0.80]
    assert len({problem.label for problem in made}) == 5
    assert not worlds.has("a_module_that_nobody_has")
