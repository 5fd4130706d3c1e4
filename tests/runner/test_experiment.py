"""Experiments as data: labels, ids, TOML."""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from polars.testing import assert_frame_equal

import belated
from belated.runner import Run

TOML = """
name = "swim"
episodes = 50
seeds = [3, 5]

[environments.river]
environment = "riverswim"
states = 4

[agents.psvi]
algorithm = "psvi"
scale = 2.0

[agents.best]
algorithm = "optimal"

[delays.late]
distribution = "lossy"
missing = 0.1
of = { distribution = "poisson", mean = 5 }
"""


def make(**changes: Any) -> belated.Experiment:
    given: dict[str, Any] = {
        "name": "x",
        "environments": belated.RiverSwim(),
        "agents": {"a": belated.RandomPolicy(), "b": belated.Greedy()},
        "delays": [belated.Constant(0), belated.Poisson(5)],
        "episodes": 10,
        "seeds": 3,
    }
    return belated.Experiment(**{**given, **changes})


def test_every_combination_is_a_run_with_an_id_of_its_own() -> None:
    ids = [run.id for run in make().runs()]
    assert len(ids) == len(set(ids)) == 1 * 2 * 2 * 3
    assert ids[0] == "x/riverswim-5/a/constant-0/seed-00"
    assert ids[-1] == "x/riverswim-5/b/poisson-5/seed-02"


def test_a_file_describes_the_same_experiment_as_python(tmp_path: Path) -> None:
    path = tmp_path / "swim.toml"
    path.write_text(TOML, encoding="utf-8")
    loaded = belated.Experiment.load(path)
    river = belated.RiverSwim(states=4)
    same = belated.Experiment(
        name="swim",
        environments={"river": river},
        agents={
            "psvi": belated.DelayedPSVI(scale=2.0),
            "best": belated.FixedPolicy(actions=river.optimal_policy().actions),
        },
        delays={"late": belated.Lossy(belated.Poisson(5), 0.1)},
        episodes=50,
        seeds=[3, 5],
    )
    assert [run.id for run in loaded.runs()] == [run.id for run in same.runs()]
    assert [run.describe() for run in loaded.runs()] == [run.describe() for run in same.runs()]


def test_descriptions_tell_settings_apart() -> None:
    def described(**changes: Any) -> dict[str, Any]:
        return make(**changes).runs()[0].describe()

    base = described()
    for change in (
        {"episodes": 11},
        {"seeds": [1]},
        {"agents": {"a": belated.Greedy()}},
        {"delays": belated.Constant(1)},
        {"environments": belated.RiverSwim(states=6)},
    ):
        assert described(**change) != base


def test_an_environment_from_arrays_is_described_by_its_tables() -> None:
    def table(reward: float) -> dict[str, Any]:
        world = belated.FiniteMDP(np.ones((1, 2, 1)), [[reward, 0.0]], horizon=2)
        return make(environments=world).runs()[0].describe()

    assert table(0.5) == table(0.5)
    assert table(0.5) != table(0.6)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"name": ""}, "name must be a non-empty text, got ''"),
        ({"name": 3}, "name must be a non-empty text, got 3"),
        ({"agents": {"\ud800": belated.Greedy()}}, "the label of an agent must be a text that can be written as UTF-8"),
        ({"seeds": []}, "seeds must be at least one"),
        ({"seeds": [1, 1]}, "without repetition"),
        ({"episodes": 0}, "episodes must be an integer >= 1"),
        ({"agents": {}}, "agents must not be empty"),
        ({"agents": {"a": 3}}, r"agents\['a'\] must be an algorithm"),
        ({"agents": {"a": belated.Greedy}}, r"agents\['a'\] must be an algorithm"),
        ({"agents": {"a": belated.RiverSwim()}}, r"agents\['a'\] must be an algorithm with a method start"),
        ({"seeds": 2**63}, "seeds must be an integer <= 1000000, got 9223372036854775808"),
        ({"seeds": range(2**62)}, "seeds must be at most 1000000 of them"),
        ({"seeds": [10**400]}, "seeds must be an integer <= 9223372036854775807, got 1000"),
        ({"seeds": [10**5000]}, "seeds must be .* got a number of more than 4300 digits"),
        ({"episodes": 10**400}, "episodes must be an integer <= 4611686018427387904, got 1000"),
        ({"episodes": 10**13}, "episodes must be at most 1000000000 with record_every=1: a larger record_every gives"),
        ({"record_every": 10**400}, "record_every must be an integer <= 4611686018427387904"),
        ({"delays": belated.Fixed([1, 2, 3])}, "delay must have a fixed delay for each of 10 episodes, got 3 of them"),
        ({"delays": belated.DelayByAction([belated.Constant(0)] * 3)}, "must be one for each of 2 actions, got 3"),
        ({"delays": []}, "delays must not be empty"),
        ({"delays": [3]}, "delays must be DelayDistribution objects"),
        (
            {"delays": [belated.Multinomial([1, 2], [0.5, 0.5]), belated.Multinomial([1, 2], [0.1, 0.9])]},
            "two entries labelled 'multinomial-1-2'; give a mapping",
        ),
    ],
)
def test_what_is_not_an_experiment_is_refused(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(belated.InvalidInputError, match=message):
        make(**changes)


def test_the_longest_labels_are_file_names(tmp_path: Path) -> None:
    long = "a" * 150
    belated.run_experiment(
        make(name=long, agents={long: belated.RandomPolicy()}, delays={long: belated.Constant(0)}, seeds=1),
        folder=tmp_path,
        progress=False,
    )
    assert len(list(tmp_path.rglob("*.parquet"))) == 1


def test_rare_rows_allow_many_episodes() -> None:
    assert make(episodes=10**13, record_every=10**6).runs()[0].rows == 10**7


def test_the_optimal_agent_needs_one_environment(tmp_path: Path) -> None:
    path = tmp_path / "two.toml"
    path.write_text(TOML + '\n[environments.sea]\nenvironment = "deepsea"\n', encoding="utf-8")
    with pytest.raises(belated.InvalidInputError, match="'optimal' needs exactly one environment, got 2"):
        belated.Experiment.load(path)


CONVERSIONS = """
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
distribution = "byreward"
zero = {distribution = "lossy", missing = 1.0, of = {distribution = "constant", value = 0}}
positive = {distribution = "geometric", mean = 5}

[delays.one]
distribution = "byreward"
zero = {distribution = "constant", value = 0}
positive.distribution = "mixture"
positive.weights = [0.5, 0.5]
positive.components = [{distribution = "constant", value = 1}, {distribution = "poisson", mean = 4}]
"""


def test_an_experiment_in_toml_is_the_one_in_python(tmp_path: Path) -> None:
    file = tmp_path / "conversions.toml"
    file.write_text(CONVERSIONS, encoding="utf-8")
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
    values = tomllib.loads(CONVERSIONS)
    first = belated.Experiment.from_dict(values).runs()
    described = [run.describe() for run in first]
    for run, plain in zip(first, described, strict=True):
        values["environments"] = {run.environment_label: plain["environment"]}
        values["delays"] = {run.delay_label: plain["delay"]}
        again = belated.Experiment.from_dict(values).runs()
        assert plain in [each.describe() for each in again]


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"environment": 3}, "FiniteMDP or GymEnvironment, or a belated.types.Environment, got 3"),
        ({"algorithm": belated.Greedy}, r"algorithm must be an algorithm with a method start\(problem\)"),
        ({"delay": 3}, "delay must be of type DelayDistribution, got 3"),
        ({"delay": belated.Fixed([1, 2])}, "delay must have a fixed delay for each of 10 episodes, got 2 of them"),
        ({"episodes": 0}, "episodes must be an integer >= 1"),
        ({"seed": -1}, "seed must be an integer >= 0"),
    ],
)
def test_a_run_is_checked_when_it_is_made(changes: dict[str, Any], message: str) -> None:
    given = {"environment": belated.RiverSwim(), "algorithm": belated.Greedy(), "delay": belated.Constant(0)}
    with pytest.raises(belated.InvalidInputError, match=message):
        Run(**{**given, "episodes": 10, "seed": 0, **changes})


def test_an_agent_that_counts_while_it_plays_is_found_again(tmp_path: Path) -> None:
    class Counting:
        started = 0

        def start(self, problem: belated.Problem) -> belated.Agent:
            self.started += 1
            return belated.RandomPolicy().start(problem)

    for _ in range(2):
        belated.run_experiment(make(agents={"a": Counting()}, seeds=1), folder=tmp_path, jobs=1, progress=False)
    assert len(list(tmp_path.rglob("*.parquet"))) == 2
