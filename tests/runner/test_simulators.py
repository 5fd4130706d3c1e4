"""Runs in environments that can only be reset and stepped."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from polars.testing import assert_frame_equal

import belated
from belated import (
    AutoPSVI,
    Constant,
    DelayedPSRL,
    DelayedPSVI,
    DelayedQLearning,
    GymEnvironment,
    InvalidInputError,
    Poisson,
    RandomPolicy,
)
from belated._util.files import load_arrays, save_arrays
from belated.agents import Settings
from belated.delays import OutcomeDelays
from belated.features import Joint, OneHot
from belated.runner import Experiment, Run, Simulation, run_experiment, simulate
from belated.runner._simulation import KIND, VERSION, play
from belated.types import Algorithm, Environment, SimulatorProblem, SparseRows, SparseVector, Step, Trajectory

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


def pair(observation: Any, action: int) -> list[float]:
    """φ(s, a) of MountainCar."""
    place, speed = float(observation[0]), float(observation[1]) * 10
    return [1.0, place, speed, speed * (action - 1), float(action == 1)]


class Corridor:
    """A simulator that knows nothing of Gymnasium: five places, the last one ends the episode and pays."""

    label = "corridor"

    def __init__(self) -> None:
        self.problem = SimulatorProblem(OneHot(sizes=(5,), start=(0,)), 8, actions=2)
        self._here = threading.local()

    def reset(self, *, seed: int, episode: int) -> int:
        self._here.at, self._here.rng = 0, np.random.default_rng([seed, episode])
        return 0

    def step(self, action: int) -> Step:
        slips = self._here.rng.random() < 0.1
        self._here.at = max(self._here.at + (1 if action == 1 and not slips else -1), 0)
        return Step(self._here.at, float(self._here.at == 4), self._here.at == 4, False)

    def encode(self, observation: int) -> SparseVector | SparseRows:
        return self.problem.features.encode(observation)

    def describe(self) -> dict[str, Any]:
        return {"environment": "corridor"}


JOINT = GymEnvironment("MountainCar-v0", horizon=12, features=Joint(function=pair))
RESUMED: dict[str, tuple[Environment, Settings]] = {
    "psvi": (Corridor(), DelayedPSVI(scale=0.3)),
    "ucbvi": (Corridor(), belated.DelayedUCBVI(bonus=0.5)),
    "chains that go on": (Corridor(), belated.DelayedLPSVI(steps=5, warm_start="episode")),
    "joint features": (JOINT, DelayedPSVI(scale=0.3, shared=True)),
    "auto": (Corridor(), AutoPSVI()),
    "auto, joint features": (JOINT, AutoPSVI()),
    "q-learning": (Corridor(), DelayedQLearning()),
    "rare": (Corridor(), belated.RareSwitching(base=DelayedPSVI(), every=5)),
    "a table": (GymEnvironment("FrozenLake-v1", horizon=20), DelayedPSRL()),
}


@pytest.mark.parametrize(("environment", "algorithm"), RESUMED.values(), ids=RESUMED.keys())
def test_a_run_goes_on_from_a_checkpoint_to_the_same_rows(
    environment: Environment, algorithm: Settings, tmp_path: Path
) -> None:
    run = Run(environment, algorithm, Poisson(6), 40, seed=3)
    whole = play(run)
    left = Simulation(run)
    for block in (7, 9):  # anywhere
        left.advance(block)
    assert left.can_be_saved
    assert left.queue.in_flight > 1
    left.save(tmp_path / "run.npz")
    resumed = Simulation(run)
    resumed.restore(tmp_path / "run.npz")
    assert (resumed.played, resumed.queue.waiting()) == (16, left.queue.waiting())
    while resumed.played < 40:
        resumed.advance(11)
    assert_frame_equal(resumed.rows(), whole, check_exact=True)
    assert whole["arrived"].sum() > 20


@pytest.mark.parametrize(
    ("name", "spoil"),
    [
        ("queue.facts", lambda values: values + 1000),
        ("queue.facts", lambda values: values[:-1]),
        ("queue.indices", lambda values: values + 5),
        ("queue.values", lambda values: values * np.nan),
        ("queue.actions", lambda values: values + 2),
        ("queue.rewards", lambda values: values[:-1]),
        ("queue.lengths", lambda values: values[:-1]),
        ("rows.sampled_return", lambda values: values * np.nan),
        ("memory.progress", lambda values: values[:-1]),
    ],
)
def test_a_checkpoint_that_does_not_fit_is_refused_and_changes_nothing(name: str, spoil: Any, tmp_path: Path) -> None:
    run = Run(Corridor(), DelayedPSVI(), Poisson(6), 40, seed=3)
    left = Simulation(run)
    left.advance(16)
    left.save(tmp_path / "run.npz")
    header, arrays = load_arrays(tmp_path / "run.npz", KIND, VERSION)
    save_arrays(tmp_path / "spoilt.npz", KIND, VERSION, header, {**arrays, name: spoil(arrays[name])})
    other = Simulation(run)
    with pytest.raises(belated.DamagedFileError, match="does not contain a valid checkpoint"):
        other.restore(tmp_path / "spoilt.npz")
    assert (other.played, other.recorded, other.queue.in_flight) == (0, 0, 0)
    other.restore(tmp_path / "run.npz")


def test_the_checkpoint_of_another_agent_is_refused(tmp_path: Path) -> None:
    left = Simulation(Run(Corridor(), DelayedPSVI(), Poisson(6), 40, seed=3))
    left.advance(16)
    left.save(tmp_path / "run.npz")
    with pytest.raises(InvalidInputError, match="rows of other settings: agent was"):
        Simulation(Run(Corridor(), AutoPSVI(), Poisson(6), 40, seed=3)).restore(tmp_path / "run.npz")


def test_delays_by_reward_look_at_what_was_played() -> None:
    delay = belated.DelayByReward(zero=Constant(1), positive=Constant(4))
    rows = simulate(Corridor(), DelayedQLearning(), delay, episodes=60, seed=0)
    earned = rows["sampled_return"].to_numpy()
    assert set(earned) == {0.0, 1.0}
    assert rows["delay"].to_list() == [4 if total > 0 else 1 for total in earned]
    due = np.arange(60) + rows["delay"].to_numpy() + 1
    assert rows["arrived"].to_list() == [int((due == k).sum()) for k in range(60)]


class LateWhenFallen(OutcomeDelays):
    """Late by the number of steps, unless a step cost a hundred."""

    distributions_by_outcome = tuple(Constant(n) for n in range(31))

    def outcome(self, trajectory: Trajectory) -> int:
        return 0 if (trajectory.rewards == -100.0).any() else len(trajectory.rewards)


@pytest.mark.parametrize("agent", [DelayedPSRL(), RandomPolicy(), DelayedQLearning()], ids=lambda agent: agent.kind)
def test_a_delay_looks_at_every_reward_as_it_was_paid(agent: Any) -> None:
    """An agent on a table learns from rewards on another scale, and from episodes that all are as long."""
    cliff = GymEnvironment("CliffWalking-v1", horizon=30)
    rows = simulate(cliff, agent, LateWhenFallen(), episodes=40, seed=1)
    fell = rows["sampled_return"].to_numpy() < -30
    assert fell.any()
    assert ((rows["delay"].to_numpy() == 0) == fell).all()
    paid = belated.DelayByReward(zero=Constant(1), positive=Constant(4))
    assert set(simulate(cliff, agent, paid, episodes=5, seed=1)["delay"]) == {1}, "nothing on a cliff is positive"


def test_delays_by_action_look_at_the_first_action() -> None:
    firsts: list[int] = []

    class Watched(Corridor):
        def reset(self, *, seed: int, episode: int) -> int:
            self._here.first = True
            return super().reset(seed=seed, episode=episode)

        def step(self, action: int) -> Step:
            if self._here.first:
                firsts.append(action)
            self._here.first = False
            return super().step(action)

    delay = belated.DelayByAction([Constant(0), Constant(3)])
    rows = simulate(Watched(), RandomPolicy(), delay, episodes=30, seed=0)
    assert set(firsts) == {0, 1}
    assert rows["delay"].to_list() == [(0, 3)[action] for action in firsts]
    with pytest.raises(InvalidInputError, match=r"delay\.delays must be one for each of 2 actions"):
        simulate(Corridor(), RandomPolicy(), belated.DelayByAction([Constant(0)] * 3), episodes=3, seed=0)


def test_an_environment_of_ones_own_runs_in_experiments() -> None:
    agents: dict[str, Settings] = {"auto": AutoPSVI(), "random": RandomPolicy()}
    results = belated.run(Corridor(), agents, Poisson(2), episodes=40, seeds=2, jobs=1, progress=False)
    returns = {name: results.returns(agent=name).mean() for name in ("auto", "random")}
    assert returns["auto"] > returns["random"]
    rows = simulate(Corridor(), AutoPSVI(), Poisson(2), episodes=40, seed=0)
    assert rows["value"].null_count() == 40
