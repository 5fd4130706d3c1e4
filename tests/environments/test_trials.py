"""Recorded and generated trials: Kaplan–Meier by hand and against a naive loop, neighbours, what is installed."""

from __future__ import annotations

import importlib.machinery
from pathlib import Path

import numpy as np
import pytest

from belated.agents import LearnByAge
from belated.delays import NEVER, Constant
from belated.environments import any_environment_from_dict, trials
from belated.environments.trials import GENERATED, RECORDED, GeneratedTrial, RecordedTrial, kaplan_meier
from belated.errors import BelatedError
from belated.runner import simulate
from belated.testing import check_environment
from belated.types import TablePolicy


def test_kaplan_meier_against_a_naive_loop() -> None:
    rng = np.random.default_rng(1)
    times, happened = rng.integers(1, 15, 60).astype(float), rng.integers(0, 2, 60).astype(float)
    surviving = 1.0
    for day in range(1, 13):
        at_risk, died = (times >= day).sum(), ((times == day) & (happened == 1)).sum()
        surviving *= 1 - died / at_risk
    order = np.lexsort((-happened, times))
    assert kaplan_meier(times[order][np.newaxis], happened[order][np.newaxis], 12).sum() == pytest.approx(1 - surviving)


def test_a_table_of_your_own() -> None:
    times, happened, arms = [10, 30, 50, 60, 20, 90], [1, 0, 1, 0, 1, 1], list("aaabbb")
    trial = RecordedTrial.from_table(times, happened, arms, window=60, rounds=30)
    # arm a: 1/3 at day 10, the loss at day 30 passes its share to day 50, so nobody is left; arm b: 1/3 at day 20
    assert trial.rewards[0] == pytest.approx(np.array([[-1.0, -1 / 3]]))
    assert trial.reports(0, episode=0) == [(4, -1.0, False)]
    assert trial.reports(3, episode=0) == []


def test_contexts_are_patients_and_their_neighbours() -> None:
    rng = np.random.default_rng(0)
    covariates, arms = rng.normal(size=(300, 2)), np.arange(300) % 2
    risk = np.where(covariates[:, 0] > 0, 0.9, 0.1)  # the sign of the first covariate decides
    happened = (rng.random(300) < risk).astype(int)
    trial = RecordedTrial.from_table(np.full(300, 5.0), happened, arms, 10, 20, covariates)
    assert trial.features.shape == (300, 2, 6)
    clear = np.abs(covariates[:, 0]) > 1
    seen = -trial.rewards[0][clear]
    assert np.abs(seen - risk[clear, np.newaxis]).mean() < 0.15
    assert set(np.unique(trial.courses.patients[:, 0, :-1]) % 2) == {0}  # neighbours within the arm


@pytest.mark.parametrize("name", GENERATED)
def test_generated_trials(name: str) -> None:
    trial = GeneratedTrial(name, rounds=50)
    check_environment(trial)
    again = any_environment_from_dict(trial.to_dict())
    assert again.describe() == trial.describe()
    assert GeneratedTrial(name, rounds=60).describe() != trial.describe()
    chance = np.random.default_rng(0)
    policy = TablePolicy(np.array([[1]]))
    earned = [trial.rollout(policy, chance).rewards[0] for _ in range(3000)]
    assert np.mean(earned) == pytest.approx(trial.rewards[0, 0, 1], abs=0.02)
    delays = [d for k in range(60) for p in range(0, 400, 7) for d, _, _ in trial.reports(p, k)]
    assert 0 <= min(delays) <= max(delays) <= trial.window < NEVER


def test_what_is_sold_and_returned_is_worth_what_is_kept() -> None:
    kept = [arm.chance * (1 - arm.refunded) for arm in GENERATED["refunds"]]
    assert GeneratedTrial("refunds").rewards[0, 0] == pytest.approx(kept, abs=1e-4)


@pytest.mark.parametrize("name", RECORDED)
def test_a_trial_that_is_not_installed_says_what_to_install(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(trials, "find_spec", lambda package: None)
    with pytest.raises(BelatedError, match=f"read from {RECORDED[name].package}, got none installed: pip install"):
        RecordedTrial(name, rounds=10)


def test_records_of_lifelines_are_read_without_importing_it(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """A made-up file in the place and with the columns of the real one."""
    folder = tmp_path / "lifelines" / "datasets"
    folder.mkdir(parents=True)
    header = "week,arrest,fin,age,race,wexp,mar,paro,prio"
    rows = [f"{week},{arrest},{fin},20,1,0,0,1,{week}" for week, arrest, fin in
            [(10, 1, 0), (52, 0, 0), (26, 1, 1), (52, 0, 1)]]  # fmt: skip
    (folder / "rossi.csv").write_text("\n".join([header, *rows]))
    spec = importlib.machinery.ModuleSpec("lifelines", None, is_package=True)
    spec.submodule_search_locations = [str(tmp_path / "lifelines")]
    monkeypatch.setattr(trials, "find_spec", lambda package: spec)
    trial = RecordedTrial("rossi", rounds=52)
    assert trial.rewards[0].tolist() == [[-0.5, -0.5]]
    assert trial.reports(0, episode=0) == [(10, -1.0, False)]  # 70 of 363 days are 10.03 rounds
    shown = RecordedTrial("rossi", rounds=52, contexts=True)
    assert shown.features.shape == (4, 2, 14)


@pytest.mark.parametrize("name", RECORDED)
def test_real_records(name: str) -> None:
    """The estimates that survival packages print for these trials, where they are installed."""
    source = RECORDED[name]
    if not trials.installed(source.package):
        pytest.skip(f"{source.package} is not installed")
    known = {
        "actg175": [0.2506, 0.1245, 0.1164, 0.1521],
        "rossi": [0.287, 0.2222],
        "colon": [0.4929, 0.3436, 0.4895],
        "rhdnase": [0.4292, 0.3226],
        "cgd": [0.4222, 0.2278],
        "myeloid": [0.5456, 0.4477],
        "prothr": [0.4391, 0.3774],
    }
    trial = RecordedTrial(name, rounds=100)
    assert -trial.rewards[0, 0] == pytest.approx(known[name], abs=1e-4)
    rows = simulate(trial, LearnByAge(window=100), Constant(0), episodes=50, seed=0)
    assert set(rows["sampled_return"].unique()) <= {-1.0, 0.0}
