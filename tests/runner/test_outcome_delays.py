"""Bandits and delays that depend on the outcome: both loops, specifications, checkpoints, sparse rows."""

from __future__ import annotations

import tomllib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from in_python import InPython
from polars.testing import assert_frame_equal

import belated
from belated.algorithms import Settings
from belated.delays import OutcomeLaw
from belated.rng import stream
from belated.runner.loop import CHUNK, Simulation
from belated.types import Trajectory

WORLDS: dict[str, belated.FiniteMDP] = {
    "random": belated.LinearBandit(dimension=3, actions=3, sets="random", contexts=7),
    "changing": belated.LinearBandit(dimension=3, actions=3, sets="changing", contexts=5, noise=0.2),
    "fixed-logistic": belated.LinearBandit(dimension=3, actions=3, reward="logistic"),
    "conversion": belated.LinearBandit(dimension=3, actions=3, sets="random", contexts=4, reward="conversion"),
    "table": belated.ClassificationBandit("wine", order="recorded"),
    "mdp": belated.RandomLinearMDP(states=4, actions=3, dimension=3, horizon=3, bernoulli=True),
}
LAWS: dict[str, belated.DelayLaw | OutcomeLaw] = {
    "poisson": belated.Poisson(6),
    "by-action": belated.DelayByAction(
        [belated.Constant(0), belated.Geometric(9), belated.Lossy(belated.Poisson(3), 0.2)]
    ),
    "by-reward": belated.DelayByReward(
        zero=belated.Lossy(belated.Constant(0), missing=1.0), positive=belated.Geometric(20)
    ),
}
ALGORITHMS: dict[str, Settings] = {
    "psvi": belated.DelayedPSVI(noise=0.5),
    "greedy": belated.EpsilonGreedy(epsilon=0.2),
    "random": belated.RandomPolicy(),
}


@pytest.mark.parametrize("law", LAWS)
@pytest.mark.parametrize("world", WORLDS)
def test_both_loops_give_the_same_rows_bit_for_bit(world: str, law: str) -> None:
    for algorithm in ALGORITHMS.values():
        compiled = belated.simulate(WORLDS[world], algorithm, LAWS[law], episodes=300, seed=3)
        in_python = belated.simulate(WORLDS[world], InPython(algorithm), LAWS[law], episodes=300, seed=3)
        assert_frame_equal(compiled, in_python, check_exact=True)


def test_the_delay_follows_the_reward() -> None:
    law = LAWS["by-reward"]
    rows = belated.simulate(WORLDS["conversion"], belated.RandomPolicy(), law, episodes=2000, seed=1)
    drawn = law.sample(stream(1, "delay"), 2000)
    earned = rows["sampled_return"].to_numpy() > 0
    assert 200 < earned.sum() < 1800
    assert rows["delay"].is_null().to_list() == (~earned).tolist()
    assert rows.filter(pl.Series(earned))["delay"].to_list() == drawn[earned, 1].tolist()


@pytest.mark.parametrize("action", [0, 1, 2])
def test_the_delay_follows_the_first_action(action: int) -> None:
    world, law = WORLDS["mdp"], LAWS["by-action"]
    table = np.full((3, 4), (action + 1) % 3)
    table[0] = action
    rows = belated.simulate(world, belated.FixedPolicy(actions=table), law, episodes=200, seed=2)
    drawn = law.sample(stream(2, "delay"), 200)[:, action]
    assert rows["delay"].fill_null(np.iinfo(np.int64).max).to_list() == drawn.tolist()


def test_arrivals_follow_the_delays_that_the_outcomes_chose() -> None:
    for law in ("by-action", "by-reward"):
        rows = belated.simulate(WORLDS["conversion"], belated.RandomPolicy(), LAWS[law], episodes=600, seed=4)
        due = rows.select(pl.col("episode") + pl.col("delay") + 1).to_series().drop_nulls()
        expected = np.bincount(due.to_numpy(), minlength=600)[:600]
        assert rows["arrived"].to_list() == expected.tolist()


def test_contexts_in_turn_and_regret_from_first_principles() -> None:
    world = WORLDS["changing"]
    rows = belated.simulate(world, belated.RandomPolicy(), belated.Constant(0), episodes=40, seed=0)
    assert rows["start"].to_list() == [k % 5 for k in range(40)]
    best = world.rewards[0].max(axis=1)[np.arange(40) % 5]
    np.testing.assert_array_equal(rows["optimal"], best)
    np.testing.assert_allclose(rows["regret"], np.cumsum(best - rows["value"].to_numpy()), rtol=1e-13)
    noise = rows["sampled_return"].to_numpy() - rows["value"].to_numpy()
    assert 0.1 < noise.std() < 0.3


class LateOnRoundReturns(OutcomeLaw):
    """A law of one's own, of which compiled code knows nothing."""

    label = "late-on-round-returns"
    laws_by_outcome = (belated.Constant(0), belated.Constant(2), belated.Constant(5))

    def outcome(self, trajectory: Trajectory) -> int:
        return int(trajectory.rewards.sum() // 1) % 3

    def to_dict(self) -> dict[str, Any]:
        return {"law": self.label}


def test_a_law_of_ones_own_runs() -> None:
    run = Simulation(WORLDS["mdp"], belated.DelayedPSVI(), LateOnRoundReturns(), episodes=300, seed=0)
    assert not run.compiled
    assert not run.at_checkpoint
    while run.played < run.episodes:
        run.advance()
    rows = run.rows()
    assert set(rows["sampled_return"].to_list()) == {0.0, 1.0, 2.0, 3.0}
    assert rows["delay"].to_list() == [(0, 2, 5, 0)[int(earned)] for earned in rows["sampled_return"]]
    mine: Any = LateOnRoundReturns()
    results = belated.run(
        WORLDS["mdp"], {"a": belated.DelayedPSVI()}, mine, episodes=300, seeds=1, jobs=1, progress=False
    )
    assert_frame_equal(results.frame.select(rows.columns), rows, check_exact=True)


def test_a_subclass_that_decides_otherwise_is_asked() -> None:
    class Reversed(belated.DelayByReward):
        def outcome(self, trajectory: Trajectory) -> int:
            return 1 - super().outcome(trajectory)

    law = Reversed(zero=belated.Constant(1), positive=belated.Constant(4))
    rows = belated.simulate(WORLDS["conversion"], belated.RandomPolicy(), law, episodes=100, seed=0)
    assert rows["delay"].to_list() == [1 if earned else 4 for earned in rows["sampled_return"]]


def test_a_law_for_each_action_is_needed() -> None:
    law = belated.DelayByAction([belated.Constant(0)] * 4)
    with pytest.raises(belated.InvalidInputError, match=r"delay\.laws must be one law for each of 3 actions, got 4"):
        belated.simulate(WORLDS["conversion"], belated.RandomPolicy(), law, episodes=3, seed=0)


TOML = """
name = "conversions"
episodes = 50
seeds = 2

[environments.shop]
environment = "linear-bandit"
dimension = 2
actions = 2
sets = "random"
contexts = 6
reward = "conversion"

[environments.wine]
environment = "classification"
dataset = "wine"

[agents.random]
algorithm = "random"

[delays.reported]
law = "byreward"
zero = {law = "lossy", missing = 1.0, of = {law = "constant", value = 0}}
positive = {law = "geometric", mean = 5}

[delays.one]
law = "byreward"
zero = {law = "constant", value = 0}
positive = {law = "mixture", weights = [0.5, 0.5], laws = [{law = "constant", value = 1}, {law = "poisson", mean = 4}]}
"""


def test_an_experiment_in_toml_is_the_one_in_python(tmp_path: Path) -> None:
    file = tmp_path / "conversions.toml"
    file.write_text(TOML, encoding="utf-8")
    loaded = belated.Experiment.load(file)
    other = belated.Experiment(
        name="conversions",
        environments={
            "shop": belated.LinearBandit(2, 2, "random", 6, "conversion"),
            "wine": belated.ClassificationBandit("wine"),
        },
        agents={"random": belated.RandomPolicy()},
        delays={
            "reported": belated.DelayByReward(belated.Lossy(belated.Constant(0), 1.0), belated.Geometric(5)),
            "one": belated.DelayByReward(
                belated.Constant(0), belated.Mixture([belated.Constant(1), belated.Poisson(4)], [0.5, 0.5])
            ),
        },
        episodes=50,
        seeds=2,
    )
    assert [run.describe() for run in loaded.runs()] == [run.describe() for run in other.runs()]
    kept, fresh = (belated.run_experiment(each, jobs=1, progress=False).frame for each in (loaded, other))
    assert_frame_equal(kept, fresh, check_exact=True)
    again = belated.run_experiment(loaded, folder=tmp_path, jobs=1, progress=False)
    resumed = belated.run_experiment(other, folder=tmp_path, jobs=1, progress=False)
    assert_frame_equal(again.frame, resumed.frame, check_exact=True)


def test_a_specification_survives_from_dict() -> None:
    values = tomllib.loads(TOML)
    first = belated.Experiment.from_dict(values).runs()
    described = [run.describe() for run in first]
    for run, plain in zip(first, described, strict=True):
        values["environments"] = {run.environment_label: plain["environment"]}
        values["delays"] = {run.delay_label: plain["delay"]}
        again = belated.Experiment.from_dict(values).runs()
        assert plain in [each.describe() for each in again]


EPISODES = 2 * CHUNK + 300
RUN: dict[str, Any] = {"episodes": EPISODES, "seed": 5}


def finish(run: Simulation) -> pl.DataFrame:
    while run.played < run.episodes:
        run.advance()
    return run.rows()


def fresh(**changes: Any) -> Simulation:
    given: dict[str, Any] = {
        "environment": WORLDS["changing"],
        "algorithm": ALGORITHMS["greedy"],
        "delay": LAWS["by-action"],
        **RUN,
        **changes,
    }
    return Simulation(**given)


@pytest.fixture(scope="module")
def whole() -> pl.DataFrame:
    return finish(fresh())


@pytest.fixture(scope="module")
def saved(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the checkpoint of a run that was left after the first blocks."""
    path = tmp_path_factory.mktemp("checkpoint") / "run.npz"
    run = fresh()
    while not run.played or not run.at_checkpoint:
        run.advance()
    assert run.played == CHUNK
    run.save(path)
    return path


def test_a_restored_run_gives_the_rows_of_one_that_was_never_left(saved: Path, whole: pl.DataFrame) -> None:
    run = fresh()
    run.restore(saved)
    assert run.played == CHUNK
    assert run.post.size[0] > 0  # something is under way, and must not be lost
    assert_frame_equal(run.rows(), whole[:CHUNK], check_exact=True)
    assert_frame_equal(finish(run), whole, check_exact=True)


@pytest.mark.parametrize("law", LAWS)
@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_a_killed_run_goes_on_from_its_file(tmp_path: Path, algorithm: str, law: str) -> None:
    arguments = WORLDS["conversion"], ALGORITHMS[algorithm], LAWS[law]
    settings: dict[str, Any] = {**RUN, "record_every": 100}
    expected = belated.simulate(*arguments, **settings)
    file = tmp_path / "run.npz"
    heard: list[int] = []

    def die_after(episodes: int) -> Callable[[int], None]:
        def watch(played: int) -> None:
            heard.append(played)
            if sum(heard) >= episodes:
                raise KeyboardInterrupt

        return watch

    for deaths in (CHUNK + 1, 2 * CHUNK + 1):
        heard.clear()
        with pytest.raises(KeyboardInterrupt):
            belated.simulate(*arguments, **settings, checkpoint=file, checkpoint_seconds=0.0, watch=die_after(deaths))
        assert file.exists()
    heard.clear()
    rows = belated.simulate(*arguments, **settings, checkpoint=file, watch=heard.append)
    assert heard[0] == 2 * CHUNK  # it did not start from the beginning
    assert sum(heard) == EPISODES
    assert_frame_equal(rows, expected, check_exact=True)
    assert not file.exists()


@pytest.mark.parametrize(
    "changes",
    [
        {"seed": 6},
        {"episodes": EPISODES + 1},
        {"record_every": 2},
        {"algorithm": belated.EpsilonGreedy(epsilon=0.3)},
        {"algorithm": InPython(ALGORITHMS["greedy"])},
        {"delay": belated.Poisson(6)},
        {"environment": belated.LinearBandit(dimension=3, actions=3, sets="changing", contexts=5, noise=0.3)},
        {"environment": WORLDS["random"]},
    ],
)
def test_the_checkpoint_of_another_run_is_refused_and_changes_nothing(saved: Path, changes: dict[str, Any]) -> None:
    run = fresh(**changes)
    with pytest.raises(belated.InvalidInputError, match="is the checkpoint of a run with other settings; use another"):
        run.restore(saved)
    assert (run.played, run.recorded) == (0, 0)


def test_a_damaged_checkpoint_is_refused(saved: Path, tmp_path: Path) -> None:
    content = saved.read_bytes()
    middle = len(content) // 2
    flipped = bytes([content[middle] ^ 0xFF])
    damaged = {
        "cut": content[:middle],
        "flipped": content[:middle] + flipped + content[middle + 1 :],
        "empty": b"",
    }
    for name, part in damaged.items():
        path = tmp_path / name
        path.write_bytes(part)
        with pytest.raises(belated.DamagedFileError, match="is not a whole belated-checkpoint file"):
            fresh().restore(path)
        arguments = WORLDS["changing"], ALGORITHMS["greedy"], LAWS["by-action"]
        with pytest.raises(belated.DamagedFileError):
            belated.simulate(*arguments, **RUN, checkpoint=path)
        assert path.read_bytes() == part


@pytest.mark.parametrize("missing", ["memory.reward_moment", "post.heap", "rows.value"])
def test_a_checkpoint_without_all_its_arrays_is_refused(saved: Path, tmp_path: Path, missing: str) -> None:
    with np.load(saved) as archive:
        arrays = dict(archive)
    assert missing in arrays, sorted(arrays)
    del arrays[missing]
    path = tmp_path / "partial.npz"
    np.savez(path, **arrays)
    with pytest.raises(belated.DamagedFileError, match="does not hold a usable checkpoint"):
        fresh().restore(path)


@pytest.mark.parametrize(
    ("name", "spoil"),
    [
        ("post.states", lambda values: values + 10**6),
        ("post.heap", lambda values: np.zeros_like(values)),
        ("post.size", lambda values: values + 10**6),
        ("post.rewards", lambda values: values[:-1]),
    ],
)
def test_a_checkpoint_that_compiled_code_could_not_read_is_refused(
    saved: Path, tmp_path: Path, name: str, spoil: Any
) -> None:
    with np.load(saved) as archive:
        arrays = dict(archive)
    path = tmp_path / "spoilt.npz"
    np.savez(path, **{**arrays, name: spoil(arrays[name])})
    with pytest.raises(belated.DamagedFileError, match="does not hold a usable checkpoint"):
        fresh().restore(path)


def test_regret_is_summed_over_the_blocks(whole: pl.DataFrame) -> None:
    np.testing.assert_array_equal(whole["regret"], np.cumsum((whole["optimal"] - whole["value"]).to_numpy()))


@pytest.mark.parametrize("every", [2, 7, 1000, EPISODES, EPISODES + 5])
def test_sparse_rows_are_rows_of_the_full_run(every: int, whole: pl.DataFrame) -> None:
    rows = finish(fresh(record_every=every))
    wanted = [k for k in range(EPISODES) if (k + 1) % every == 0 or k == EPISODES - 1]
    assert rows["episode"].to_list() == wanted
    assert_frame_equal(rows, whole[wanted], check_exact=True)  # cumulative regret included
