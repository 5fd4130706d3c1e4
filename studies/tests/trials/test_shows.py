"""The scene of fifty shows: its listeners, its arms, and its table from rows with known numbers."""

from __future__ import annotations

from collections.abc import Iterator

import invented
import numpy as np
import pytest

from belated_studies.trials import shows
from belated_studies.trials.settings import AGE, MATURE, QUICK
from belated_studies.trials.shows import ARTEFACT, FITTED


@pytest.fixture(autouse=True)
def _few(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr(shows, "LISTENERS", 40)
    monkeypatch.setattr(shows, "OTHERS", 20)
    monkeypatch.setattr(shows, "SHOWS", 6)
    shows.listened.cache_clear()
    yield
    shows.listened.cache_clear()


def test_arms_are_worth_the_days_of_their_listeners() -> None:
    came, trial = shows.listened(), shows.trial(10)
    assert trial.rewards[0, 0] == pytest.approx(came[20:].sum(axis=2).mean(axis=1))
    assert trial.window == 589
    days = np.flatnonzero(came[20, 3])
    assert trial.reports(3, episode=0) == [(10 * (day + 1) - 1, 1.0) for day in days.tolist()]
    totals = came[:20].sum(axis=2)
    assert shows.fitted_ridge() == pytest.approx(totals.var(axis=1).mean() / totals.mean(axis=1).var())


def test_the_table_has_averages() -> None:
    ends = {AGE: 180.0, FITTED: 90.0, MATURE: 360.0}
    played = invented.played(ARTEFACT, QUICK.resized(seeds=3), lambda run: ends[run.agent_label] * run.episodes / 180)
    rows = invented.table(ARTEFACT.section(played), "shows-table")
    assert rows[0] == ["10", 1.0, 0.5, 2.0, 1.31, 1.81]
    assert rows[1][-2:] == [0.78, None]
    assert "10 decisions a day 1.00, with λ fitted 0.50, theirs 1.31" in ARTEFACT.findings(played)[0]
