"""Runs in environments that can only be reset and stepped."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from polars.testing import assert_frame_equal

import belated
from belated import (
    AutoPSVI,
    Constant,
    DelayedPSVI,
    DelayedQLearning,
    GymEnvironment,
    InvalidInputError,
    Poisson,
    RandomPolicy,
)
from belated.features import OneHot
from belated.runner import Experiment, run_experiment, simulate
from belated.types import Algorithm

TOML = """
name = "lake"
episodes = 30
seeds = 2
[environments.lake]
environment = "gymnasium"
id = "FrozenLake-v1"
horizon = 20
[agents.auto]
algorithm = "auto-psvi"
[agents.random]
algorithm = "random"
[delays.late]
distribution = "poisson"
mean = 3
"""


@pytest.fixture(scope="module")
def car() -> GymEnvironment:
    return GymEnvironment("MountainCar-v0", horizon=30)


@pytest.fixture(scope="module")
def lake() -> GymEnvironment:
    return GymEnvironment("FrozenLake-v1", horizon=20)


def test_rows_have_the_return_and_nothing_that_nobody_knows(car: GymEnvironment) -> None:
    rows = simulate(car, AutoPSVI(), Poisson(2), episodes=12, seed=1)
    assert rows.height == 12
    assert all(rows[name].null_count() == 12 for name in ("value", "optimal", "regret"))
    assert rows["sampled_return"].to_list() == [-30.0] * 12
    delays = rows["delay"].to_numpy()
    due = np.arange(12) + delays + 1
    assert rows["arrived"].to_list() == [int((due == k).sum()) for k in range(12)]


def test_a_run_is_the_same_again_and_the_seed_matters(lake: GymEnvironment) -> None:
    first, again, other = (simulate(lake, AutoPSVI(), Poisson(3), episodes=40, seed=seed) for seed in (0, 0, 1))
    assert_frame_equal(first, again)
    assert not first.equals(other)


def test_an_agent_that_needs_a_table_plays_where_there_is_one_with_exact_values(lake: GymEnvironment) -> None:
    rows = simulate(lake, DelayedPSRL(), Constant(1), episodes=30, seed=0)
    assert rows["value"].null_count() == 0
    assert lake.optimal_value is not None
    assert rows["optimal"].to_numpy() == pytest.approx(lake.optimal_value)
    assert rows["regret"].to_numpy() == pytest.approx(np.cumsum(rows["optimal"].to_numpy() - rows["value"].to_numpy()))


def test_an_agent_that_needs_a_table_is_refused_where_there_is_none(car: GymEnvironment) -> None:
    with pytest.raises(InvalidInputError, match="DelayedPSRL needs a table of all states, which MountainCar-v0"):
        simulate(car, DelayedPSRL(), Constant(0), episodes=2, seed=0)
    with pytest.raises(InvalidInputError, match="DelayedPSRL needs a table"):  # before anything is played
        Experiment(
            name="car", environments=car, agents={"psvi": DelayedPSRL()}, delays=Constant(0), episodes=2, seeds=1
        )


def test_chance_plays_with_and_without_a_table(lake: GymEnvironment, car: GymEnvironment) -> None:
    exact, sampled = (simulate(world, RandomPolicy(), Constant(1), episodes=4, seed=0) for world in (lake, car))
    assert exact["value"].is_not_nan().all()
    assert sampled["value"].null_count() == 4
    assert sampled["sampled_return"].to_list() == [-30.0] * 4


def test_an_experiment_of_a_file_is_kept_and_resumed(tmp_path: Path) -> None:
    file = tmp_path / "lake.toml"
    file.write_text(TOML)
    experiment = Experiment.load(file)
    whole = run_experiment(experiment, progress=False)
    run_experiment(experiment, folder=tmp_path / "rows", progress=False)
    kept = sorted((tmp_path / "rows").rglob("*.parquet"))
    assert len(kept) == 4
    kept[0].unlink()
    assert_frame_equal(run_experiment(experiment, folder=tmp_path / "rows", progress=False).frame, whole.frame)
    summary = whole.summary()
    assert summary["value"].null_count() == 1  # AutoPSVI needs no table here
    assert summary["return"].null_count() == 0
    assert whole.returns(agent="auto").shape == (2, 30)


def test_processes_give_the_same_rows(lake: GymEnvironment) -> None:
    experiment = Experiment(
        name="same", environments=lake, agents={"auto": AutoPSVI()}, delays=Poisson(2), episodes=15, seeds=2
    )
    here, apart = (run_experiment(experiment, backend=each, progress=False) for each in ("threads", "processes"))
    assert_frame_equal(here.frame, apart.frame)


@pytest.mark.parametrize("name", ["RiverSwim", "SyntheticLinearMDP"])
@pytest.mark.parametrize("algorithm", [RandomPolicy(), DelayedPSVI(), AutoPSVI(), DelayedQLearning()])
def test_our_own_environments_are_played_as_they_are_directly(name: str, algorithm: Algorithm) -> None:
    direct, through = getattr(belated, name)(), GymEnvironment(f"belated/{name}-v0")
    one, other = (simulate(each, algorithm, Poisson(3), episodes=40, seed=2) for each in (direct, through))
    assert_frame_equal(one, other)


def test_features_that_were_given_are_used_in_our_own_environments_too() -> None:
    river = GymEnvironment("belated/RiverSwim-v0", features=OneHot(sizes=(5,), start=(0,)))
    rows = simulate(river, AutoPSVI(), Poisson(3), episodes=40, seed=2)
    assert rows["value"].null_count() == 40
    assert rows["sampled_return"].to_numpy()[10:].max() > 0


