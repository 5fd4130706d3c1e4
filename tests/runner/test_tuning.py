"""The search for settings: fairness, successive halving, resumption and its files."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from polars.testing import assert_frame_equal

import belated
from belated.runner import Run
from belated.runner import _backends as playing
from belated.runner._simulation import play
from belated.runner._tuning import Outcome, Range, Rung, Search, Space, load_winners, tune

SPACES = {
    "psvi": Space(belated.DelayedPSVI(), {"scale": [0.1, 1.0, 30.0], "draws": [1, 3]}),
    "ucbvi": Space(belated.DelayedUCBVI(), {"bonus": [0.03, 0.1, 0.3, 1.0, 3.0, 10.0]}),
}
RUNGS = (Rung(60, range(100, 102), keep=3), Rung(120, range(100, 103), keep=2), Rung(200, [200, 201, 202], keep=1))


def search(**changes: Any) -> Search:
    given: dict[str, Any] = {
        "name": "river",
        "environment": belated.RiverSwim(states=4, horizon=8),
        "delay": belated.Poisson(3),
        "spaces": SPACES,
        "rungs": RUNGS,
        "report_seeds": range(10),
    }
    return Search(**{**given, **changes})


@pytest.fixture(scope="module")
def outcome(tmp_path_factory: pytest.TempPathFactory) -> Outcome:
    return tune(search(), folder=tmp_path_factory.mktemp("search"), progress=False)


def test_a_space_is_the_full_product_applied_to_its_base() -> None:
    base = belated.DelayedPSVI(noise=0.5)
    space = Space(base, {"scale": list(np.array([0.5, 2.0])), "draws": (np.int64(1), np.int64(2))})
    assert space.candidates() == [
        belated.DelayedPSVI(noise=0.5, scale=scale, draws=draws) for scale in (0.5, 2.0) for draws in (1, 2)
    ]
    json.dumps([space.specification(point) for point in space.points()])


@pytest.mark.parametrize(
    ("grid", "message"),
    [
        ({"scael": [1.0]}, "'scael'; its settings are: ridge, shared, draws, noise, ties, cap, scale, storage"),
        ({"scale": [1.0, -1.0]}, "scale must be a finite number >= 0, got -1"),
        ({"scale": []}, r"grid\['scale'\] must be a sequence of at least one value"),
        ({"scale": 1.0}, r"grid\['scale'\] must be a sequence of at least one value, got 1.0"),
        ({"scale": [1, 1.0]}, r"grid\['scale'\] must be distinct values"),
        ({}, "grid must be a mapping from at least one setting to its values"),
    ],
)
def test_a_bad_grid_is_refused(grid: dict[str, Sequence[Any]], message: str) -> None:
    with pytest.raises(belated.InvalidInputError, match=message):
        Space(belated.DelayedPSVI(), grid)


def test_a_base_that_is_not_settings_is_refused() -> None:
    with pytest.raises(belated.InvalidInputError, match="base must be settings of an algorithm, got 'psvi'"):
        Space("psvi", {"scale": [1.0]})  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ((0, [1], 1), "episodes must be an integer >= 1, got 0"),
        ((10, [], 1), "seeds must be a sequence of seeds, at least one, and each only once"),
        ((10, 3, 1), "seeds must be a sequence of seeds"),
        ((10, [1, 1], 1), "each only once"),
        ((10, [-1], 1), "seeds must be an integer >= 0, got -1"),
        ((10, [1], 0), "keep must be an integer >= 1, got 0"),
    ],
)
def test_a_bad_rung_is_refused(values: tuple[Any, Any, Any], message: str) -> None:
    with pytest.raises(belated.InvalidInputError, match=message):
        Rung(*values)


def test_an_unequal_budget_is_refused() -> None:
    more = {**SPACES, "greedy": Space(belated.EpsilonGreedy(), {"epsilon": [0.1, 0.2]})}
    with pytest.raises(belated.InvalidInputError, match="for an equal budget, got psvi: 6, ucbvi: 6, greedy: 2"):
        search(spaces=more)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"report_seeds": range(95, 102)}, r"tuning seeds must not be report seeds, got \[100, 101\] in both"),
        ({"report_seeds": [202]}, r"got \[202\] in both"),
        ({"report_seeds": []}, "report_seeds must be a sequence of seeds, at least one"),
        ({"rungs": []}, "rungs must not be empty"),
        ({"rungs": [60]}, "rungs must be a sequence of Rung objects"),
        ({"rungs": [Rung(9, [50], 3), Rung(9, [50], 3), Rung(9, [50], 1)]}, r"ever fewer of 6 .* got \[3, 3, 1\]"),
        ({"rungs": [Rung(9, [50], 6), Rung(9, [50], 1)]}, r"ever fewer of 6 candidates, finally 1, got \[6, 1\]"),
        ({"rungs": [Rung(9, [50], 2)]}, r"finally 1, got \[2\]"),
        ({"spaces": {}}, "spaces must not be empty"),
        ({"spaces": {"psvi": belated.DelayedPSVI()}}, "spaces must be a mapping from labels to Space objects"),
        ({"spaces": {"": SPACES["psvi"]}}, "the label of an agent must be a non-empty text"),
        ({"name": ""}, "name must be a non-empty text"),
        ({"environment": "riverswim"}, "environment must be a FiniteMDP, got 'riverswim'"),
        ({"delay": 5}, "delay must be a DelayDistribution, got 5"),
    ],
)
def test_a_bad_search_is_refused(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(belated.InvalidInputError, match=message):
        search(**changes)


def test_halving_keeps_the_best(outcome: Outcome) -> None:
    """Play every rung by hand, one simulation after the other."""
    world, delay = belated.RiverSwim(states=4, horizon=8), belated.Poisson(3)
    for label, space in SPACES.items():
        left = list(enumerate(space.candidates()))
        for number, rung in enumerate(RUNGS):
            rows = outcome.table.filter(agent=label, rung=number)
            regret = {}
            for n, settings in left:
                played = [
                    belated.simulate(world, settings, delay, episodes=rung.episodes, seed=seed) for seed in rung.seeds
                ]
                regret[n] = float(np.mean([(each["optimal"] - each["value"]).sum() for each in played]))
            assert rows["candidate"].to_list() == list(regret)
            np.testing.assert_allclose(rows["regret"].to_numpy(), list(regret.values()), rtol=1e-9)
            best = sorted(regret, key=lambda n: (regret[n], n))[: rung.keep]
            assert rows.filter("kept")["candidate"].to_list() == sorted(best)
            left = [(n, settings) for n, settings in left if n in best]
        assert [outcome.winners[label]] == [settings for _, settings in left]


@pytest.mark.parametrize(
    ("grid", "winner", "edges"),
    [
        ({"scale": [0.1, 1.0, 30.0]}, {"scale": 0.1}, {"scale": "smaller"}),
        ({"scale": [30.0, 1.0, 0.1]}, {"scale": 30.0}, {"scale": "larger"}),
        ({"scale": [0.1, 1.0, 30.0]}, {"scale": 1.0}, {}),
        ({"scale": [0.1]}, {"scale": 0.1}, {}),
        ({"scale": [0.0, 1.0]}, {"scale": 0.0}, {}),  # there is nothing below 0
        ({"draws": [1, 3], "scale": [0.1, 1.0]}, {"draws": 1, "scale": 1.0}, {"scale": "larger"}),
        ({"draws": [1, 3]}, {"draws": 3}, {"draws": "larger"}),
        ({"shared": [False, True]}, {"shared": True}, {}),
        ({"storage": ["float64", "float32"]}, {"storage": "float32"}, {}),
    ],
)
def test_a_winner_at_the_edge_says_which_way_to_widen(
    grid: dict[str, Any], winner: dict[str, Any], edges: dict[str, str]
) -> None:
    assert Space(belated.DelayedPSVI(), grid).edges(winner) == edges


def test_a_setting_that_may_not_be_larger_is_not_at_the_edge() -> None:
    space = Space(belated.EpsilonGreedy(), {"epsilon": [0.1, 0.5, 1.0]})
    assert space.edges({"epsilon": 1.0}) == {}
    assert space.edges({"epsilon": 0.1}) == {"epsilon": "smaller"}


def test_the_edge_of_a_range_that_is_sampled_is_its_last_twentieth() -> None:
    scale = Range(low=0.01, high=100.0, log=True)
    assert [scale.edge(value) for value in (0.01, 0.015, 0.02, 1.0, 50.0, 80.0)] == [
        *("smaller", "smaller", None, None, None, "larger"),
    ]
    assert Range(low=1, high=4).edge(4) == "larger"


def test_an_outcome_says_what_to_widen(tmp_path: Path) -> None:
    spaces = {
        "psvi": Space(belated.DelayedPSVI(), {"scale": [100.0, 1000.0]}),
        "mine": Space({"algorithm": "psvi"}, {"draws": [1, 2]}),
    }
    found = tune(search(spaces=spaces, rungs=[Rung(60, [100], keep=1)]), folder=tmp_path, progress=False)
    best = found.specifications["psvi"]["scale"]
    side = "smaller" if best == 100.0 else "larger"
    assert found.edges["psvi"] == {"scale": side}
    assert f"  scale = {best} is at the edge of the search: try {side} values, too" in str(found).splitlines()
    assert str(found).startswith('psvi: {"algorithm": "psvi"')


def test_ties_go_to_the_earlier_candidate(tmp_path: Path) -> None:
    """Without a bonus ratio at work, its values change nothing."""
    same = Space(belated.DelayedUCBVI(bonus=1.0), {"bonus_ratio": [0.5, 0.2, 0.1]})
    found = tune(search(spaces={"same": same}, rungs=[Rung(30, [50], keep=1)]), folder=tmp_path, progress=False)
    assert found.table["regret"].n_unique() == 1
    assert found.winners == {"same": belated.DelayedUCBVI(bonus=1.0, bonus_ratio=0.5)}


def test_the_table_has_a_row_for_each_candidate_and_rung(outcome: Outcome) -> None:
    table = outcome.table
    counts = table.group_by("agent", "rung").len().sort("agent", "rung")["len"].to_list()
    assert counts == [6, 3, 2] * 2
    assert table.select("agent", "candidate", "rung").is_unique().all()
    assert table["episodes"].unique().sort().to_list() == [60, 120, 200]
    assert table.filter(pl.col("rung") == 0)["seeds"].to_list() == [2] * 12
    assert (table["regret_low"] <= table["regret"]).all()
    assert (table["regret"] <= table["regret_high"]).all()
    for agent, candidate, settings in table.select("agent", "candidate", "settings").iter_rows():
        assert json.loads(settings) == SPACES[agent].candidates()[candidate].to_dict()
    assert outcome.seconds > 0


def test_an_interrupted_search_resumes_to_the_same_outcome_and_plays_nothing_twice(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, outcome: Outcome
) -> None:
    played: list[tuple[str, int, int]] = []
    stops = [5, 27, 45]  # one in each rung

    def stop_now_and_then(run: Run, **given: Any) -> pl.DataFrame:
        if stops and len(played) == stops[0]:
            stops.pop(0)
            raise KeyboardInterrupt
        rows = play(run, **given)
        played.append((repr(run.algorithm), run.episodes, run.seed))
        return rows

    monkeypatch.setattr(playing, "play", stop_now_and_then)
    for _ in range(3):
        with pytest.raises(KeyboardInterrupt):
            tune(search(), folder=tmp_path, jobs=1, progress=False)
    resumed = tune(search(), folder=tmp_path, jobs=2, progress=False)
    assert not stops
    assert len(played) == len(set(played)) == 2 * (6 * 2 + 3 * 3 + 2 * 3)
    assert resumed.winners == outcome.winners
    assert_frame_equal(resumed.table, outcome.table, check_exact=True)

    again = tune(search(), folder=tmp_path, progress=False)
    assert len(played) == len(set(played))
    assert_frame_equal(again.table, outcome.table, check_exact=True)


def test_another_search_of_the_same_name_is_refused(tmp_path: Path) -> None:
    tune(search(rungs=[Rung(20, [50], keep=1)]), folder=tmp_path, progress=False)
    with pytest.raises(belated.InvalidInputError, match="rows of other settings: episodes was 20, now it is 30"):
        tune(search(rungs=[Rung(30, [50], keep=1)]), folder=tmp_path, progress=False)


def test_winners_survive_their_file(tmp_path: Path, outcome: Outcome) -> None:
    outcome.save(tmp_path)
    assert load_winners(tmp_path / "winners.json") == outcome.winners
    content = json.loads((tmp_path / "winners.json").read_text())
    assert content["search"] == "river"
    assert content["environment"] == belated.RiverSwim(states=4, horizon=8).to_dict()
    assert content["delay"] == belated.Poisson(3).to_dict()
    assert content["tuning_seeds"] == [100, 101, 102, 200, 201, 202]
    assert content["report_seeds"] == list(range(10))
    assert content["rungs"][1] == {"episodes": 120, "seeds": [100, 101, 102], "keep": 2}
    assert_frame_equal(pl.read_csv(tmp_path / "search.csv"), outcome.table)
    before = (tmp_path / "winners.json").read_bytes()
    outcome.save(tmp_path)
    assert (tmp_path / "winners.json").read_bytes() == before
    assert sorted(path.name for path in tmp_path.iterdir()) == ["search.csv", "winners.json"]


def test_an_environment_built_from_arrays_is_described_by_its_digest(tmp_path: Path) -> None:
    world = belated.FiniteMDP([[[1.0], [1.0]]], [[0.2, 0.8]], horizon=2)
    found = tune(search(environment=world, rungs=[Rung(10, [50], keep=1)]), folder=tmp_path, progress=False)
    found.save(tmp_path)
    assert set(json.loads((tmp_path / "winners.json").read_text())["environment"]) == {"tables"}


def test_a_table_that_is_played_step_by_step_is_searched_by_its_returns(tmp_path: Path) -> None:
    lake = belated.GymEnvironment("FrozenLake-v1", is_slippery=False)
    assert lake.table is not None
    spaces = {"q": Space(belated.DelayedQLearning(), {"epsilon": [0.1, 0.5]})}
    made = Search("lake", lake, belated.Constant(0), spaces, [Rung(20, [50], keep=1)], report_seeds=[0])
    outcome = tune(made, folder=tmp_path, progress=False)
    assert (made.measure, "return" in outcome.table.columns) == ("return", True)
