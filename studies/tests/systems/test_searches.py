"""Searches of equal size, on seeds and instances that no report uses."""

from __future__ import annotations

from belated_studies.systems import STUDY, searches
from belated_studies.systems.testbeds import FULL


def test_reported_seeds_are_not_searched_and_bandits_are_other_instances() -> None:
    made = (searches.linear_bandit, searches.on_the_fly, searches.waiting, searches.chain, searches.adversarial)
    for search in (one() for one in made):
        assert tuple(search.report_seeds) == tuple(range(FULL.seeds))
        assert not set(search.report_seeds) & {seed for rung in search.rungs for seed in rung.seeds}
    reported = {run.environment.describe()["seed"] for run in STUDY.experiments(FULL)["bandits"].runs()}
    assert reported == {0}
    assert searches.linear_bandit().environment.describe()["seed"] == 1
    assert searches.on_the_fly().environment.describe()["seed"] == 1


def test_bandits_are_searched_on_as_many_rounds_as_are_reported() -> None:
    experiments = STUDY.experiments(FULL)
    reported = {experiments[name].episodes for name in ("bandits", "conversions-never", "conversions-waiting")}
    for search in (searches.linear_bandit(), searches.on_the_fly(), searches.waiting()):
        assert {rung.episodes for rung in search.rungs} == reported
