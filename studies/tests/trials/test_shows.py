"""The scene of fifty shows: its listeners, its arms, and its table from rows with known numbers."""

from __future__ import annotations

from dataclasses import replace

import invented
import numpy as np
import pytest

from belated._kernels.streams import stream
from belated_studies.trials import shows
from belated_studies.trials.settings import AGE, MATURE, QUICK
from belated_studies.trials.shows import ARTEFACT, FITTED

pytestmark = pytest.mark.usefixtures("few_listeners")


def test_arms_are_worth_the_days_of_their_listeners() -> None:
    came, trial = shows.listened()[0], shows.trial(10)
    assert trial.rewards[0, 0] == pytest.approx(came.sum(axis=2).mean(axis=1))
    assert trial.window == 589
    days = np.flatnonzero(came[0, 3])
    assert trial.reports(3, episode=0) == [(10 * (day + 1) - 1, 1.0, False) for day in days.tolist()]


def test_their_belief_without_a_listener_is_the_prior() -> None:
    prior = shows.fitted_prior()
    belief = shows.Progressive(prior)
    belief.update(np.ones(shows.DAYS), 0)
    belief.sample(1, stream(0, "agent"))  # one day of one listener is known: by hand
    weight = prior.between[:, 0] / (prior.between[0, 0] + prior.within[0, 0])
    assert belief.mean == pytest.approx(float((prior.mean + weight * (1.0 - prior.mean[0])).sum()))
    assert belief.variance == pytest.approx(float((prior.between - np.outer(weight, prior.between[0])).sum()))


def test_the_table_has_averages() -> None:
    ends = {AGE: 180.0, FITTED: 90.0, MATURE: 360.0}
    played = invented.played(ARTEFACT, QUICK.resized(seeds=3), lambda run: ends[run.agent_label] * run.episodes / 180)
    runs = [shows.ShowRun(per_day, 0, 0.75, 3.0, 0.1) for per_day in shows.PER_DAY]
    played = replace(played, measured={"shows": runs})
    rows = invented.table(ARTEFACT.section(played), "shows-table")
    assert rows[0] == ["10", 0.5, 0.75, 1.0, 2.0, 1.31, 1.81, 0.1, 3.0]
    told = ARTEFACT.findings(played)[0]
    assert "10 decisions a day 0.50 with the fitted prior (theirs 0.75 here, 1.31 reported; 30 times the CPU)" in told
