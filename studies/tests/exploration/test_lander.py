"""LunarLander: compared with DQN on the same late episodes, where Box2D is."""

from __future__ import annotations

import pytest

from belated_studies.exploration import lander


@pytest.mark.parametrize("installed", [False, True])
def test_it_is_played_where_its_package_is(installed: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lander, "has", lambda *modules: installed)
    made = lander.problems.__wrapped__()
    assert [problem.label for problem in made] == ["lunar"] * installed
    assert all(problem.bars["poisson-10"].not_below_dqn and problem.episodes == 600 for problem in made)
