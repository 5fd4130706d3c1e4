"""Ten more problems: all that are named, where their packages are."""

from __future__ import annotations

import pytest

from belated_studies.exploration import more


@pytest.mark.parametrize(("installed", "count"), [(True, 10), (False, 3)])
def test_there_are_ten(installed: bool, count: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(more, "has", lambda *modules: installed)
    made = more.problems.__wrapped__()
    assert len({problem.label for problem in made}) == count
    assert not any(problem.bars for problem in made), "told as they come out"
