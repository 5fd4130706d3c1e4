"""The study of systems is what it says: sizes, laws, seeds apart from those of the searches."""

from __future__ import annotations

import pytest

import belated
from belated.delays import NEVER, DelayByReward
from belated.experiments import systems
from belated.experiments.searches import SEARCHES, SYSTEM_SEEDS
from belated.experiments.systems import ARTEFACTS, FULL, QUICK, experiments


def test_every_section_names_declared_experiments() -> None:
    declared = experiments(FULL)
    assert {name for names in ARTEFACTS.values() for name in names} == set(declared)
    assert set(experiments(QUICK, ["chains"])) == {"chains"}
    with pytest.raises(belated.UnknownNameError, match="chains"):
        experiments(QUICK, ["chain"])


def test_the_full_study_has_the_promised_size() -> None:
    declared = experiments(FULL)
    for name in ("bandits", "chains", "conversions-never", "testbed-mdp", "switching"):
        assert declared[name].seeds == tuple(range(30))
    bandits = declared["bandits"].runs()
    assert {run.environment.dimension for run in bandits} == {5, 10, 20}
    means = {run.delay.mean for run in bandits if isinstance(run.delay, belated.DelayLaw)}
    assert {100, 1000} <= means
    chains = {(run.environment.states, run.environment.horizon) for run in declared["chains"].runs()}
    assert chains == {(5, 5), (10, 10), (20, 20)}


def test_reported_seeds_are_not_searched_and_bandits_are_other_instances() -> None:
    for name in ("linear-bandit", "conversions", "waiting", "chain", "adversarial"):
        search = SEARCHES[name]
        assert search.report_seeds == SYSTEM_SEEDS == tuple(range(FULL.seeds))
        assert not set(SYSTEM_SEEDS) & {seed for rung in search.rungs for seed in rung.seeds}
    reported = {run.environment.describe()["seed"] for run in experiments(FULL)["bandits"].runs()}
    assert reported == {0}
    assert SEARCHES["linear-bandit"].environment.describe()["seed"] == 1
    assert SEARCHES["conversions"].environment.describe()["seed"] == 1


def test_what_silence_means() -> None:
    silent, told = systems.SILENT, systems.TOLD
    assert isinstance(silent, DelayByReward)
    assert silent.zero.quantile(0.001) == NEVER
    assert told.zero == belated.Constant(systems.WINDOW)
    assert silent.positive == told.positive


def test_lazy_agents_differ_from_the_active_one_in_updating_only() -> None:
    agents = systems.chain_agents()
    active = agents["active"].to_dict()
    for alpha in systems.LAZY:
        lazy = agents[f"lazy-{alpha}"].to_dict()
        changed = {name for name in active if active[name] != lazy[name]}
        assert changed <= {"updating", "growth"}
        assert (lazy["updating"], lazy["growth"]) == ("lazy", alpha)
