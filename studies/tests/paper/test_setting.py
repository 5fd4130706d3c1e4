"""The worlds, delays and sizes against what the paper prints."""

from __future__ import annotations

import pytest
from small import SMALL

import belated
from belated_studies.paper import STUDY
from belated_studies.paper.setting import DELAYS, FULL, LOMAX, synthetic
from belated_studies.paper.table_3 import SIZES


def test_the_full_size_is_the_papers() -> None:
    declared = STUDY.experiments(FULL)
    ours = {name for name in declared if name.startswith("variance")}
    assert {declared[name].episodes for name in set(declared) - ours} == {5000}
    assert declared["figure-1-literal"].seeds == tuple(range(10))
    assert declared["figure-3-literal"].seeds == tuple(range(5))


def test_other_seeds_are_also_those_of_riverswim() -> None:
    size = SMALL.resized(seeds=3, episodes=70)
    assert (size.seeds, size.riverswim_seeds, size.episodes, size.folder) == (3, 3, 70, "70-episodes")
    assert SMALL.resized(episodes=70).riverswim_seeds == SMALL.riverswim_seeds


def test_environments_and_delays_are_the_papers() -> None:
    figure = STUDY.experiments(FULL)["figure-1-literal"].runs()[0].environment
    assert isinstance(figure, belated.FiniteMDP)
    assert (figure.states, figure.actions, figure.dimension, figure.horizon) == (2, 50, 10, 20)
    assert synthetic(40).actions == 20
    assert [synthetic(pairs).states * synthetic(pairs).actions for pairs in SIZES] == [20, 40, 100, 200]
    river = STUDY.experiments(FULL)["figure-3-literal"].runs()[0]
    assert isinstance(river.environment, belated.FiniteMDP)
    assert (river.environment.states, river.environment.dimension, river.environment.horizon) == (5, 10, 20)
    assert river.delay == belated.Poisson(5)
    assert DELAYS["multinomial"].mean == pytest.approx(10 * 0.5 + 20 * 0.3 + 30 * 0.2)
    assert DELAYS["poisson"].mean == 50
    assert isinstance(DELAYS["pareto"], belated.Pareto)
    assert DELAYS["pareto"].quantile(1e-9) == 500
    assert LOMAX.quantile(1e-9) == 0


def test_the_paper_itself_is_played_unless_all_is_asked_for() -> None:
    usual = ["figure-1", "figure-2", "table-2", "table-3", "table-4", "figure-3", "table-1"]
    assert STUDY.usual(full=False) == usual
    assert STUDY.usual(full=True) == [
        *usual,
        "computation",
        "delay",
        "details",
        "sequences",
        "temperature",
        "variance",
        "withheld",
    ]
    assert STUDY.quick == STUDY.full == FULL


def test_artefacts_name_the_experiments_they_need() -> None:
    assert sorted(STUDY.experiments(SMALL, ["table-3", "table-4"])) == ["sizes-literal", "sizes-tuned"]
    assert sorted(STUDY.experiments(SMALL, ["table-1"])) == ["bandit", "systems", "table-2-tuned"]
    assert STUDY.experiments(SMALL, ["figure-2", "computation"]) == {}
