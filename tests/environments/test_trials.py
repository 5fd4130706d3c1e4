"""Trials: Kaplan–Meier by hand and against a naive loop, patients and reports by hand, both loops alike."""

from __future__ import annotations

import importlib.machinery
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from belated.agents import QPMD, DelayedPSLB, LearnByAge, OTFLinUCB
from belated.delays import NEVER, Constant, DelayByReward, Geometric, Lossy, Poisson
from belated.environments import any_environment_from_dict, trials
from belated.environments.trials import GENERATED, RECORDED, GeneratedTrial, RecordedTrial, Trial, kaplan_meier
from belated.errors import BelatedError, InvalidInputError
from belated.runner import run, simulate
from belated.testing import check_environment
from belated.types import Agent, Algorithm, Problem, TablePolicy

INF = np.inf
#: Two arms; patient 0 has an event at half of the window and one at its end, patient 1 none, patient 2 one early.
SMALL: dict[str, Any] = {
    "patients": [[[0, 1], [1, 2]]],
    "chances": [[[0.5, 0.5], [0.75, 0.25]]],
    "ages": [[1.0, 0.5], [INF, INF], [0.05, INF]],
    "amounts": [[-0.25, 1.0], [1.0, 1.0], [1.0, 9.0]],
}


@dataclass(frozen=True)
class InPython:
    """An algorithm whose agent the runner must ask in Python."""

    algorithm: Algorithm

    def start(self, problem: Problem) -> Agent:
        agent: Any = self.algorithm.start(problem)

        class Plain:
            plan, plan_from, learn = agent.plan, agent.plan_from, agent.learn

        return Plain()


def test_means_and_reports_by_hand() -> None:
    trial = Trial(**SMALL, rounds=10)
    assert trial.rewards[0].tolist() == [[0.375, 0.25]]
    assert trial.optimal_value == 0.375
    # ten rounds a window: an event at half of it is known in the fifth round after, so that its delay is 4
    assert [trial.reports(patient, episode=3) for patient in range(3)] == [[(4, 1.0), (9, -0.25)], [], [(0, 1.0)]]
    assert trial.window == 9
    assert trial.problem.reward_range == (-0.25, 9.0)


def test_when_told_there_is_one_report_once_the_reward_is_certain() -> None:
    trial = Trial(**SMALL, rounds=10, told=True)
    assert [trial.reports(patient, episode=0) for patient in range(3)] == [[(9, 0.75)], [(9, 0.0)], [(9, 1.0)]]
    single = {**SMALL, "ages": [[1.0], [INF], [0.05]], "amounts": [[1.0], [1.0], [1.0]]}
    assert [Trial(**single, rounds=10, told=True).reports(p, episode=0) for p in range(3)] == [
        [(9, 1.0)],
        [(9, 0.0)],
        [(0, 1.0)],
    ]


def test_patients_enter_by_day_and_night() -> None:
    """A day is half a window; three enter in its first tenth, then one in the middle."""
    trial = Trial(**SMALL, rounds=8, entries=[0.0, 0.02, 0.04, 0.25], period=0.5)
    # the second enters at 0.02; an event at 0.05 later is known to the fourth; one at 0.5 later to the second of the
    # next day, and one a whole window later to the second of the day after
    assert [trial.reports(p, episode=5) for p in (2, 0)] == [[(1, 1.0)], [(3, 1.0), (7, -0.25)]]
    # that of the last, at 0.25, is known to the first of the next day
    assert trial.reports(2, episode=3) == [(0, 1.0)]


def test_a_patient_is_drawn_with_these_chances() -> None:
    trial, rng = Trial(**SMALL, rounds=10), np.random.default_rng(0)
    drawn = np.bincount([trial.draw(0, 1, rng) for _ in range(4000)], minlength=3) / 4000
    assert drawn == pytest.approx([0.0, 0.75, 0.25], abs=0.03)
    earned = [trial.rollout(TablePolicy(np.array([[0]])), rng).rewards[0] for _ in range(4000)]
    assert np.mean(earned) == pytest.approx(0.375, abs=0.03)


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
    assert trial.reports(0, episode=0) == [(4, -1.0)]
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


@pytest.mark.parametrize("algorithm", [LearnByAge(window=60), OTFLinUCB(window=60, scale=0.1)])
@pytest.mark.parametrize("name", ["refunds", "day-and-night"])
def test_both_loops_give_the_same_rows(algorithm: Algorithm, name: str) -> None:
    trial = GeneratedTrial(name, rounds=50)
    compiled, asked = (
        simulate(trial, each, Poisson(2), episodes=300, seed=4) for each in (algorithm, InPython(algorithm))
    )
    assert compiled.equals(asked)
    assert compiled["delay"].null_count() > 0


def test_every_agent_can_play_a_trial_that_tells_all() -> None:
    trial = GeneratedTrial("speeds", rounds=40, told=True)
    agents = {"pslb": DelayedPSLB(), "qpm-d": QPMD(base=DelayedPSLB()), "age": LearnByAge(window=40, ages=1)}
    results = run(trial, agents, Constant(0), episodes=200, seeds=2, jobs=1, progress=False)
    assert results.regret(agent="qpm-d").shape == (2, 200)
    compiled, asked = (
        simulate(trial, each, Constant(0), episodes=200, seed=1) for each in (DelayedPSLB(), InPython(DelayedPSLB()))
    )
    assert compiled.equals(asked)


def test_one_age_learns_from_silence_what_one_is_told_at_the_end() -> None:
    """With refunds all is certain when the window is over: silence and telling then teach the same."""
    silent, told = (GeneratedTrial("refunds", rounds=40, told=told) for told in (False, True))
    settings = LearnByAge(window=silent.window, ages=1)
    rows = [simulate(trial, settings, Constant(0), episodes=400, seed=2)["regret"] for trial in (silent, told)]
    assert rows[0].equals(rows[1])


def test_rows_are_kept_and_read_again(tmp_path: Path) -> None:
    trial = GeneratedTrial("refunds", rounds=40)
    agents = {"age": LearnByAge(window=40)}
    first, again = (
        run(trial, agents, Constant(0), episodes=200, seeds=2, folder=tmp_path, jobs=1, progress=False)
        for _ in range(2)
    )
    assert np.array_equal(first.regret(agent="age"), again.regret(agent="age"))


def test_an_agent_that_cannot_add_reports_is_refused() -> None:
    trial = GeneratedTrial("refunds", rounds=40)
    with pytest.raises(InvalidInputError, match=r"DelayedPSLB must be told every reward as a whole.*told=True"):
        simulate(trial, DelayedPSLB(), Constant(0), episodes=10, seed=0)
    silence = DelayByReward(zero=Lossy(Constant(0), missing=1.0), positive=Geometric(3))
    with pytest.raises(InvalidInputError, match="delay must be the same for all outcomes in a trial"):
        simulate(trial, LearnByAge(), silence, episodes=10, seed=0)


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
    delays = [d for k in range(60) for p in range(0, 400, 7) for d, _ in trial.reports(p, k)]
    assert 0 <= min(delays) <= max(delays) <= trial.window < NEVER


def test_what_is_sold_and_returned_is_worth_what_is_kept() -> None:
    kept = [arm.chance * (1 - arm.refunded) for arm in GENERATED["refunds"]]
    assert GeneratedTrial("refunds").rewards[0, 0] == pytest.approx(kept, abs=1e-4)


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
    assert trial.reports(0, episode=0) == [(10, -1.0)]  # 70 of 363 days are 10.03 rounds
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
