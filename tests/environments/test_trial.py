"""A trial by hand: who is drawn, what is reported of them and when, and what is refused."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from belated.environments.trials import Trial
from belated.errors import InvalidInputError
from belated.types import TablePolicy

INF = np.inf
#: Two arms; patient 0 has an event at half of the window and one at its end, patient 1 none, patient 2 one early.
SMALL: dict[str, Any] = {
    "patients": [[[0, 1], [1, 2]]],
    "chances": [[[0.5, 0.5], [0.75, 0.25]]],
    "ages": [[1.0, 0.5], [INF, INF], [0.05, INF]],
    "amounts": [[-0.25, 1.0], [1.0, 1.0], [1.0, 9.0]],
}


def test_means_and_reports_by_hand() -> None:
    trial = Trial(**SMALL, rounds=10)
    assert trial.rewards[0].tolist() == [[0.375, 0.25]]
    assert trial.optimal_value == 0.375
    # ten rounds a window: an event at half of it is known in the fifth round after, so that its delay is 4
    assert [trial.reports(patient, episode=3) for patient in range(3)] == [
        [(4, 1.0, False), (9, -0.25, False)],
        [],
        [(0, 1.0, False)],
    ]
    assert trial.window == 9
    assert trial.problem.reward_range == (-0.25, 9.0)


def test_when_told_there_is_one_report_once_the_reward_is_certain() -> None:
    trial = Trial(**SMALL, rounds=10, told=True)
    assert [trial.reports(patient, episode=0) for patient in range(3)] == [
        [(9, 0.75, False)],
        [(9, 0.0, False)],
        [(9, 1.0, False)],
    ]
    single = {**SMALL, "ages": [[1.0], [INF], [0.05]], "amounts": [[1.0], [1.0], [1.0]]}
    assert [Trial(**single, rounds=10, told=True).reports(p, episode=0) for p in range(3)] == [
        [(9, 1.0, False)],
        [(9, 0.0, False)],
        [(0, 1.0, False)],
    ]


def test_patients_enter_by_day_and_night() -> None:
    """A day is half a window; three enter in its first tenth, then one in the middle."""
    trial = Trial(**SMALL, rounds=8, entries=[0.0, 0.02, 0.04, 0.25], period=0.5)
    # the second enters at 0.02; an event at 0.05 later is known to the fourth; one at 0.5 later to the second of the
    # next day, and one a whole window later to the second of the day after
    assert [trial.reports(p, episode=5) for p in (2, 0)] == [[(1, 1.0, False)], [(3, 1.0, False), (7, -0.25, False)]]
    # that of the last, at 0.25, is known to the first of the next day
    assert trial.reports(2, episode=3) == [(0, 1.0, False)]


def test_a_patient_is_drawn_with_these_chances() -> None:
    trial, rng = Trial(**SMALL, rounds=10), np.random.default_rng(0)
    drawn = np.bincount([trial.draw(0, 1, rng) for _ in range(4000)], minlength=3) / 4000
    assert drawn == pytest.approx([0.0, 0.75, 0.25], abs=0.03)
    earned = [trial.rollout(TablePolicy(np.array([[0]])), rng).rewards[0] for _ in range(4000)]
    assert np.mean(earned) == pytest.approx(0.375, abs=0.03)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"ages": [[0.0, 1.0]] * 3}, "ages"),
        ({"ages": [[0.5, np.nan]] * 3}, "ages"),
        ({"chances": [[[0.5, 0.6], [0.5, 0.5]]]}, "chances"),
        ({"patients": [[[0, 3], [1, 2]]]}, "patients"),
        ({"amounts": [[1.0]] * 3}, "amounts"),
        ({"rounds": 0}, "rounds"),
        ({"entries": [0.1]}, "entries"),
        ({"entries": [0.0, 0.2], "period": 0.1}, "period"),
        ({"told": 1}, "told"),
    ],
)
def test_bad_trials_are_refused(change: dict[str, Any], said: str) -> None:
    with pytest.raises(InvalidInputError, match=said):
        Trial(**{**SMALL, "rounds": 10, **change})
