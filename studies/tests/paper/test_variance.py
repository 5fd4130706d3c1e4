"""Equal searches: as many candidates for each agent, chosen on seeds that are not reported."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import polars as pl

from belated.runner import run_experiment
from belated_studies.paper.setting import PaperSize
from belated_studies.paper.variance import FAMILIES, HORIZONS, KINDS, Best, best, candidates, experiments, exponent


def test_both_agents_have_the_same_candidates() -> None:
    for family in FAMILIES.values():
        groups = candidates(family, 20)
        settings = [[(one.scale, one.ridge, one.shared) for one in group.values()] for group in groups.values()]  # type: ignore[attr-defined]
        assert list(groups) == list(KINDS) and settings[0] == settings[1] and len(settings[0]) == 20


def test_the_best_is_chosen_on_seeds_that_are_not_reported() -> None:
    one = experiments(PaperSize(name="tiny", episodes=20, seeds=2, riverswim_seeds=1))[0]
    labels = list(one.agents)[:3]
    small = run_experiment(replace(one, agents={label: one.agents[label] for label in labels}))
    found = best(small, dict.fromkeys(labels))  # type: ignore[arg-type]
    rows = small.frame.filter(pl.col("episode") == pl.col("episode").max())
    first = rows.filter(pl.col("seed") < 2).group_by("agent").agg(pl.col("regret").mean()).sort("regret")
    assert found.label == first["agent"][0]
    last = rows.filter((pl.col("agent") == found.label) & (pl.col("seed") >= 2)).sort("seed")
    np.testing.assert_allclose(found.regret, last["regret"].to_numpy())


def test_the_slope_of_a_power_is_its_exponent() -> None:
    found = [Best("", 3.0 * float(horizon) ** 1.5 * np.ones(4)) for horizon in HORIZONS]
    assert np.isclose(exponent(found).value, 1.5)
