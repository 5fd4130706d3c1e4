"""The declarations against what the paper prints."""

from __future__ import annotations

from math import sqrt

import pytest
from belated.experiments.paper import ARTEFACTS, DELAYS, FULL, LOMAX, QUICK, SIZES, experiments, synthetic
from belated.experiments.searches import REPORT_SEEDS, SEARCHES
from belated.experiments.settings import literal_riverswim, literal_synthetic, tuned

import belated
from belated.studies.paper import published


def test_the_full_size_is_the_papers() -> None:
    declared = experiments(FULL)
    assert {experiment.episodes for experiment in declared.values()} == {5000}
    assert declared["figure-1-literal"].seeds == tuple(range(10))
    assert declared["figure-3-literal"].seeds == tuple(range(5))
    assert {name for names in ARTEFACTS.values() for name in names} == set(declared)


def test_environments_and_delays_are_the_papers() -> None:
    figure = experiments(FULL)["figure-1-literal"].runs()[0].environment
    assert (figure.states, figure.actions, figure.dimension, figure.horizon) == (2, 50, 10, 20)
    assert synthetic(40).actions == 20
    assert [synthetic(pairs).states * synthetic(pairs).actions for pairs in SIZES] == [20, 40, 100, 200]
    river = experiments(FULL)["figure-3-literal"].runs()[0]
    assert (river.environment.states, river.environment.dimension, river.environment.horizon) == (5, 10, 20)
    assert river.delay == belated.Poisson(5)
    assert DELAYS["multinomial"].mean == pytest.approx(10 * 0.5 + 20 * 0.3 + 30 * 0.2)
    assert DELAYS["poisson"].mean == 50
    assert DELAYS["pareto"].quantile(1e-9) == 500
    assert LOMAX.quantile(1e-9) == 0


def test_literal_settings_are_the_printed_ones() -> None:
    agents = literal_synthetic()
    for sigma in (0.1, 0.2, 0.3):
        psvi = agents[f"psvi-{sigma}"]
        assert isinstance(psvi, belated.DelayedPSVI)
        assert (psvi.draws, psvi.noise) == (2, sigma)
        assert psvi.scale == pytest.approx(sqrt(10) * 20)
    lpsvi = agents["lpsvi"]
    assert isinstance(lpsvi, belated.DelayedLPSVI)
    assert (lpsvi.draws, lpsvi.steps, lpsvi.step_ratio, lpsvi.temperature) == (2, 40, 0.5, 0.02)
    assert lpsvi.sampler == "plain"
    ucbvi = agents["ucbvi"]
    assert isinstance(ucbvi, belated.DelayedUCBVI)
    assert (ucbvi.bonus_ratio, ucbvi.bonus_form) == (0.1, "constant")


def test_literal_riverswim_settings_are_the_printed_ones() -> None:
    agents = literal_riverswim()
    assert agents["psvi"].to_dict() == {**belated.DelayedPSVI(scale=1.0, noise=1.13).to_dict()}
    lpsvi, ucbvi = agents["lpsvi"], agents["ucbvi"]
    assert isinstance(lpsvi, belated.DelayedLPSVI)
    assert lpsvi.temperature == pytest.approx(0.005**2 * 10 * 2 * 400)
    assert isinstance(ucbvi, belated.DelayedUCBVI)
    assert (ucbvi.bonus_ratio, ucbvi.bonus_form) == (0.04, "growing")


def test_published_tables_agree_where_they_show_the_same_runs() -> None:
    """Table 2's Poisson column and Table 4's |S||A| = 40 are the same setting; the paper prints them alike."""
    for by_delay, by_size in (("psvi", "psvi-0.1"), ("lpsvi", "lpsvi"), ("ucbvi", "ucbvi")):
        assert published.RETURN_BY_DELAY[by_delay]["poisson"] == published.RETURN_BY_SIZE[by_size][40]
    assert len(published.SYSTEMS) == 7


@pytest.mark.parametrize("name", SEARCHES)
def test_every_search_gives_each_agent_the_same_budget_on_other_seeds(name: str) -> None:
    search = SEARCHES[name]
    budgets = {"synthetic": 24, "riverswim": 24, "chain": 12, "adversarial": 12}
    assert {len(space.candidates()) for space in search.spaces.values()} == {budgets.get(name, 6)}
    assert not set(search.tuning_seeds) & set(search.report_seeds)
    assert set(REPORT_SEEDS) <= set(search.report_seeds)
    assert set(range(FULL.seeds)) <= set(REPORT_SEEDS)


@pytest.mark.parametrize("name", SEARCHES)
def test_committed_winners_are_candidates_of_their_search(name: str) -> None:
    winners = tuned(name)
    assert set(winners) == set(SEARCHES[name].spaces)
    for label, settings in winners.items():
        assert settings in SEARCHES[name].spaces[label].candidates()


def test_a_wrong_name_gets_the_nearest() -> None:
    with pytest.raises(belated.UnknownNameError, match="did you mean 'table-2'"):
        experiments(QUICK, ["tabel-2"])
