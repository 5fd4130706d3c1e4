"""What is compared, and the sentences about it, from regret with known numbers."""

from __future__ import annotations

import numpy as np
import pytest

from belated.agents import LearnByAge
from belated_studies.reports.document import Cell
from belated_studies.trials.settings import (
    AGE,
    FIRST_SEED,
    MATURE,
    OTF,
    QUICK,
    WAITING,
    Case,
    Compared,
    beside_otf,
    experiments,
    findings,
    regret_table,
)


def known(ratio: float, age: float, mature: float = 100.0, trial: str = "refunds") -> Compared:
    """Return runs whose means are these, one apart."""
    apart = np.array([-1.0, 0.0, 1.0])
    regret = {AGE: age + apart, MATURE: mature + apart, OTF: 50.0 + 3.0 * apart, WAITING: 70.0 + apart}
    return Compared(Case(trial, 100, ratio, recorded=False), regret)


def test_the_change_is_paired_and_a_share_of_one_window() -> None:
    change = known(1.4, 60.0).change
    assert (change.value, change.low, change.high) == pytest.approx((-0.4, -0.4, -0.4))
    assert known(1.4, 60.0).spread == pytest.approx(3.0)


def test_a_row_has_every_agent() -> None:
    (row,) = regret_table("t", "T", "C.", [known(5.0, 90.0)]).rows
    values = [each.value if isinstance(each, Cell) else each for each in row]
    assert values == ["refunds", "5", "100", 90.0, 100.0, pytest.approx(10.0), 70.0, 50.0, pytest.approx(3.0)]


def test_what_misses_a_bar_is_named() -> None:
    told = findings("Trials", [known(1.4, 60.0), known(1.4, 80.0, trial="speeds"), known(20.0, 104.0)])
    assert told == [
        "Trials, 1.4 windows long: from 20 % less to 40 % less regret than one window; never significantly more; gain "
        "below 25 %: speeds.",
        "Trials, 20 windows long: from 4 % more to 4 % more regret than one window; significantly more: refunds.",
    ]


def test_otf_is_told_of_where_it_is_better_and_how_it_varies() -> None:
    told = beside_otf([known(1.4, 60.0), known(5.0, 40.0), known(20.0, 50.0)])
    assert "significantly less regret than learning by age in 1 of 3 cases, and significantly more in 1" in told
    assert "up to 3.0 times (refunds, 1.4 windows)" in told


def test_all_agents_have_the_window_of_the_trial() -> None:
    silent, told = experiments([Case("day-and-night", 200, 2.0, recorded=False)], QUICK)
    assert (silent.name, told.name) == ("day-and-night-2", "day-and-night-2-told")
    by_age = silent.agents[AGE]
    assert isinstance(by_age, LearnByAge)
    (trial,) = {run.environment for run in silent.runs()}
    assert by_age.window == trial.window  # type: ignore[attr-defined]
    assert sorted({run.seed for run in silent.runs()})[:2] == [FIRST_SEED, FIRST_SEED + 1]
    assert list(told.agents) == [WAITING]


def test_a_trial_that_is_not_installed_is_not_played(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("belated.environments.trials.find_spec", lambda package: None)
    assert experiments([Case("actg175", 100, 2.0)], QUICK) == []
