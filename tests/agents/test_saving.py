"""A saved agent goes on as if it had never stopped; a damaged file is refused, whatever the damage."""

from __future__ import annotations

import gc
import io
import json
import os
import pickle
import subprocess
import warnings
import zipfile
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import belated
from belated._kernels.streams import stream
from belated._util.files import load_arrays, save_arrays, sealed_archive
from belated.agents import (
    CompiledSettings,
    DelayedLPSVI,
    DelayedPSVI,
    DelayedUCBVI,
    EpsilonGreedy,
    FixedPolicy,
    Greedy,
    RandomPolicy,
    load_agent,
    save_agent,
)
from belated.agents import _saving as saving
from belated.agents._base import Learner
from belated.delays import FeedbackQueue, Poisson
from belated.environments import FiniteMDP, RandomLinearMDP
from belated.errors import DamagedFileError, InvalidInputError
from belated.types import Feedback, TableProblem, Trajectory

MDP = RandomLinearMDP(states=5, actions=3, dimension=3, horizon=4)

EVERY: list[CompiledSettings] = [
    DelayedPSVI(noise=0.5, draws=3),
    DelayedLPSVI(steps=5),
    DelayedLPSVI(steps=5, step_size=0.01, warm_start="step"),
    DelayedLPSVI(steps=5, sampler="collapsed", warm_start="episode"),
    DelayedLPSVI(steps=5, sampler="preconditioned", warm_start="episode", step_ratio=0.2),
    DelayedUCBVI(),
    DelayedUCBVI(bonus_form="growing"),
    EpsilonGreedy(),
    Greedy(),
    RandomPolicy(),
    FixedPolicy(actions=np.ones((4, 5), np.int64)),
]


class Play:
    """An agent at play: its own stream, the world's, and the feedback in flight."""

    def __init__(self, mdp: FiniteMDP, agent: Learner, seed: int) -> None:
        self.mdp, self.agent = mdp, agent
        self.rng, self.world = stream(seed, "agent"), stream(seed, "environment")
        self.delays = Poisson(3).sample(stream(seed, "delay"), 100)
        self.buffer: FeedbackQueue[Trajectory] = FeedbackQueue()
        self.episode = 0

    def play(self, episodes: int) -> list[list[list[int]]]:
        plans = []
        for _ in range(episodes):
            self.agent.learn([Feedback(k, item) for k, item in self.buffer.arrived(self.episode)])
            policy = self.agent.plan(self.rng)
            plans.append(policy.actions.tolist())
            self.buffer.add(self.episode, int(self.delays[self.episode]), self.mdp.rollout(policy, self.world))
            self.episode += 1
        return plans


@pytest.mark.parametrize("settings", EVERY, ids=str)
def test_going_on_is_never_having_stopped(settings: CompiledSettings, tmp_path: Path) -> None:
    whole = Play(MDP, settings.start(MDP.problem), seed=1)
    broken = Play(MDP, settings.start(MDP.problem), seed=1)
    assert whole.play(15) == broken.play(15)
    save_agent(tmp_path / "agent.npz", broken.agent, broken.rng)
    broken.agent.plan(np.random.default_rng(0))  # the file must not follow what happens after it was written
    agent, rng = load_agent(tmp_path / "agent.npz")
    assert agent.settings == settings
    assert agent.problem.horizon == 4
    np.testing.assert_array_equal(agent.problem.features, MDP.features)
    for name, values in whole.agent.memory().items():
        np.testing.assert_array_equal(agent.memory()[name], values, err_msg=name)
    assert rng is not None
    broken.agent, broken.rng = agent, rng
    assert whole.play(20) == broken.play(20)
    assert whole.rng.bit_generator.state == broken.rng.bit_generator.state


def test_without_a_stream_none_comes_back(tmp_path: Path) -> None:
    save_agent(str(tmp_path / "agent.npz"), Greedy().start(MDP.problem))
    assert load_agent(str(tmp_path / "agent.npz")).rng is None


def test_settings_given_as_numpy_numbers_can_be_saved(tmp_path: Path) -> None:
    agent = DelayedPSVI(draws=np.int64(2), scale=np.float32(0.5)).start(MDP.problem)  # type: ignore[arg-type]
    belated.save_agent(tmp_path / "agent.npz", agent)
    assert load_agent(tmp_path / "agent.npz").agent.settings == DelayedPSVI(draws=2, scale=0.5)


def test_a_new_file_replaces_the_old_one_and_makes_its_folder(tmp_path: Path) -> None:
    path = tmp_path / "deep" / "er" / "agent.npz"
    save_agent(path, Greedy(ridge=1.0).start(MDP.problem))
    save_agent(path, Greedy(ridge=2.0).start(MDP.problem))
    assert load_agent(path).agent.settings == Greedy(ridge=2.0)
    assert [entry.name for entry in path.parent.iterdir()] == ["agent.npz"]


@pytest.mark.parametrize("broken", ["fsync", "replace", "write"])
def test_a_failed_save_leaves_the_old_file(broken: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "agent.npz"
    save_agent(path, Greedy(ridge=1.0).start(MDP.problem))
    before = path.read_bytes()

    def fail(*_: Any, **__: Any) -> None:
        raise OSError("no space left on device")

    if broken == "fsync":
        monkeypatch.setattr(os, "fsync", fail)
    elif broken == "replace":
        monkeypatch.setattr(os, "replace", fail)
        monkeypatch.setattr(Path, "replace", fail)
    else:
        monkeypatch.setattr(np, "savez", fail)
    with pytest.raises(OSError, match="no space left"):
        save_agent(path, Greedy(ridge=2.0).start(MDP.problem))
    monkeypatch.undo()
    assert path.read_bytes() == before
    assert load_agent(path).agent.settings == Greedy(ridge=1.0)
    assert [entry.name for entry in tmp_path.iterdir()] == ["agent.npz"]


@pytest.fixture
def saved(tmp_path: Path) -> tuple[Path, Learner, np.random.Generator]:
    """Return a small saved agent, so that every byte of its file can be tried."""
    rng = stream(0, "agent")
    agent = DelayedPSVI(draws=1).start(TableProblem(np.eye(2)[np.newaxis], 1))
    agent.learn([Feedback(0, Trajectory(np.zeros(2, np.int64), np.array([1]), np.array([0.5])))])
    save_agent(tmp_path / "agent.npz", agent, rng)
    return tmp_path / "agent.npz", agent, rng


def test_a_truncated_file_is_refused(saved: tuple[Path, Learner, np.random.Generator]) -> None:
    path, _, _ = saved
    whole = path.read_bytes()
    for size in [*range(0, len(whole), 7), *range(len(whole) - 30, len(whole))]:
        path.write_bytes(whole[:size])
        with pytest.raises(DamagedFileError, match=r"agent\.npz is not an intact belated-agent file"):
            load_agent(path)


@pytest.mark.parametrize("bit", range(8))
def test_a_flipped_bit_is_refused_or_harmless(bit: int, saved: tuple[Path, Learner, np.random.Generator]) -> None:
    path, agent, rng = saved
    whole = path.read_bytes()
    directory = whole.index(b"PK\x01\x02")
    refused = 0
    # every byte of the archive's directory, where damage is least like data, and one in three of the others
    for position in [*range(bit % 3, directory, 3), *range(directory, len(whole))]:
        damaged = bytearray(whole)
        damaged[position] ^= 1 << bit
        path.write_bytes(damaged)
        try:
            loaded = load_agent(path)
        except DamagedFileError as error:
            refused += 1
            assert "agent.npz" in str(error)
            continue
        assert loaded.agent.settings == agent.settings
        assert loaded.rng is not None
        assert loaded.rng.bit_generator.state == rng.bit_generator.state
        np.testing.assert_array_equal(loaded.agent.problem.features, agent.problem.features)
        for name, values in agent.memory().items():
            np.testing.assert_array_equal(loaded.agent.memory()[name], values)
    assert refused > 300


def test_a_refused_file_is_closed_again(saved: tuple[Path, Learner, np.random.Generator]) -> None:
    path, _, _ = saved
    path.write_bytes(path.read_bytes()[:-5])
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        with pytest.raises(DamagedFileError):
            load_agent(path)
        gc.collect()
    assert [str(warning.message) for warning in caught] == []


def rewrite(path: Path, fields: dict[str, Any], arrays: dict[str, Any]) -> None:
    """Write the saved agent again with some of its header and arrays changed; None removes one."""
    with np.load(path) as archive:
        entries = {name: archive[name] for name in archive.files}
    known = json.loads(entries["header"].tobytes())
    known = {name: value for name, value in {**known, **fields}.items() if value is not ...}
    entries["header"] = np.frombuffer(json.dumps(known).encode(), np.uint8)
    entries.update(arrays)
    content: dict[str, Any] = {name: value for name, value in entries.items() if value is not None}
    path.write_bytes(sealed_archive(content))


def test_rewriting_alone_does_no_harm(saved: tuple[Path, Learner, np.random.Generator]) -> None:
    rewrite(saved[0], {}, {})
    assert load_agent(saved[0]).agent.settings == saved[1].settings


STREAM: dict[str, Any] = {
    "bit_generator": "PCG64",
    "state": {"state": 1, "inc": 3},
    "has_uint32": 0,
    "uinteger": 0,
}


@pytest.mark.parametrize(
    ("header", "message"),
    [
        ({"version": 2}, "version 2 of the belated-agent layout, this code reads up to 1"),
        ({"version": "1"}, "version '1'"),
        ({"version": ...}, "version None"),
        ({"format": "belated-results"}, "is not a belated-agent file"),
        ({"format": ...}, "is not a belated-agent file"),
        ({"settings": ...}, "does not contain a valid agent: 'settings'"),
        ({"settings": None}, "does not contain a valid agent"),
        (
            {"settings": {}},
            "does not contain a valid agent: the specification must be a mapping with the field 'algorithm'",
        ),
        ({"settings": {"algorithm": "pvsi"}}, "did you mean 'psvi'"),
        ({"settings": {"algorithm": "psvi", "scale": -1}}, "scale must be"),
        ({"settings": {"algorithm": "psvi", "size": 1}}, "has no setting 'size'"),
        ({"settings": {"algorithm": "fixed"}}, "does not contain a valid agent"),
        ({"settings": {"algorithm": "ucbvi"}}, "memory must hold the arrays"),
        ({"horizon": 0}, "horizon must be"),
        ({"horizon": 2}, "memory.*must be float64 of shape"),
        ({"horizon": ...}, "does not contain a valid agent: 'horizon'"),
        ({"rng": ...}, "does not contain a valid agent: 'rng'"),
        ({"rng": 5}, "a saved random stream cannot be read"),
        ({"rng": {}}, "a saved random stream cannot be read"),
        ({"rng": {**STREAM, "bit_generator": "MT19937"}}, "a saved random stream cannot be read"),
        ({"rng": {**STREAM, "state": {"state": -1, "inc": 3}}}, "a saved random stream cannot be read"),
        ({"rng": {**STREAM, "state": {"state": 1 << 200, "inc": 3}}}, "a saved random stream cannot be read"),
        ({"rng": {**STREAM, "has_uint32": 1 << 70}}, "a saved random stream cannot be read"),
    ],
)
def test_a_header_that_makes_no_sense_is_refused(
    header: dict[str, Any], message: str, saved: tuple[Path, Learner, np.random.Generator]
) -> None:
    rewrite(saved[0], header, {})
    with pytest.raises(DamagedFileError, match=message):
        load_agent(saved[0])


@pytest.mark.parametrize(
    "arrays",
    [
        {"features": None},
        {"features": np.zeros((1, 2))},
        {"features": np.full((1, 2, 2), np.nan)},
        {"features": np.eye(3)[np.newaxis]},
        {"memory.factor": None},
        {"memory.factor": np.zeros((1, 2, 3))},
        {"memory.factor": np.zeros((1, 2, 2), np.float32)},
        {"memory.factor": np.full((1, 2, 2), np.inf)},
        {"memory.extra": np.zeros(1)},
        {"header": None},
        {"header": np.zeros(4, np.uint8)},
        {"header": np.frombuffer(b"[1, 2]", np.uint8)},
        {"header": np.frombuffer(b"\xff\xfe{}", np.uint8)},
    ],
)
def test_arrays_that_do_not_fit_are_refused(
    arrays: dict[str, Any], saved: tuple[Path, Learner, np.random.Generator]
) -> None:
    rewrite(saved[0], {}, arrays)
    with pytest.raises(DamagedFileError, match=r"agent\.npz"):
        load_agent(saved[0])


def foreign(kind: str) -> bytes:
    file = io.BytesIO()
    if kind == "npz":
        np.savez(file, weights=np.zeros(3))
    elif kind == "npy":
        np.save(file, np.zeros(3))
    elif kind == "pickle":
        pickle.dump({"settings": 1}, file)
    elif kind == "pickled npz":
        np.savez(file, header=np.array([{"format": "belated-agent"}], dtype=object))
    elif kind == "zip":
        with zipfile.ZipFile(file, "w") as archive:
            archive.writestr("header", '{"format": "belated-agent", "version": 1}')
    elif kind == "text":
        file.write(b'{"algorithm": "psvi"}\n' * 5)
    return file.getvalue()


@pytest.mark.parametrize("kind", ["npz", "npy", "pickle", "pickled npz", "zip", "text", "empty"])
def test_foreign_files_are_refused(kind: str, tmp_path: Path) -> None:
    path = tmp_path / "agent.npz"
    path.write_bytes(foreign(kind))
    with pytest.raises(DamagedFileError, match=r"agent\.npz is not"):
        load_agent(path)


def test_a_file_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match=r"there is no file .*nothing\.npz"):
        load_agent(tmp_path / "nothing.npz")
    with pytest.raises(FileNotFoundError):
        load_agent(tmp_path)


def test_nothing_in_a_file_is_ever_executed(tmp_path: Path) -> None:
    class Bomb:
        def __reduce__(self) -> tuple[Any, tuple[str, ...]]:
            return Path.touch, (tmp_path / "exploded",)  # type: ignore[return-value]

    bomb = io.BytesIO()
    np.savez(bomb, header=np.array([Bomb()], dtype=object))
    for content in (bomb.getvalue(), pickle.dumps(Bomb())):
        (tmp_path / "agent.npz").write_bytes(content)
        with pytest.raises(DamagedFileError):
            load_agent(tmp_path / "agent.npz")
    assert not (tmp_path / "exploded").exists()


def test_settings_of_ones_own(tmp_path: Path) -> None:
    class Mine(Greedy):
        kind = "mine"

    save_agent(tmp_path / "agent.npz", Mine(ridge=3.0).start(MDP.problem))
    with pytest.raises(DamagedFileError, match=r"algorithm must be one of .* or one of classes, if you pass it"):
        load_agent(tmp_path / "agent.npz")
    loaded = load_agent(tmp_path / "agent.npz", classes=[Mine]).agent
    assert type(loaded.settings) is Mine
    assert loaded.settings.ridge == 3.0


def test_a_file_imports_nothing_but_what_is_passed(tmp_path: Path) -> None:
    pytest.importorskip("sklearn")
    path, marker = tmp_path / "agent.npz", tmp_path / "marker"
    scaler = {"features": "sklearn", "transformer": "sklearn.preprocessing:StandardScaler", "rows": [[0.0], [1.0]]}
    problem = belated.types.SimulatorProblem(belated.features.features_from_dict(scaler), 2, actions=2)
    agent: Any = Greedy().start(problem)
    save_agent(path, agent)
    with pytest.raises(DamagedFileError, match=r"neither built-in .* pass classes=\['sklearn.preprocessing:"):
        load_agent(path)
    assert load_agent(path, classes=["sklearn.preprocessing:StandardScaler"]).agent.problem.features.size == 1
    header, arrays = load_arrays(path, saving.KIND, saving.VERSION)
    wicked = {"features": "sklearn", "transformer": "subprocess:Popen", "settings": {"args": ["touch", str(marker)]}}
    header["simulator"]["features"] = wicked
    save_arrays(path, saving.KIND, saving.VERSION, header, arrays)
    for classes in ([], [subprocess.Popen]):  # even what is passed has to be a transformer
        with pytest.raises(DamagedFileError, match="does not contain a valid agent: transformer"):
            load_agent(path, classes=classes)
    assert not marker.exists()


def test_classes_that_are_none_are_no_fault_of_the_file(tmp_path: Path) -> None:
    save_agent(tmp_path / "agent.npz", Greedy().start(MDP.problem))
    with pytest.raises(InvalidInputError, match="one of classes must be a class or function"):
        load_agent(tmp_path / "agent.npz", classes=[3])


def test_an_agent_on_features_goes_on_with_its_features(tmp_path: Path) -> None:
    world: Any = belated.GymEnvironment("MountainCar-v0", horizon=20)
    agent, rng = belated.AutoPSVI().start(world.problem), np.random.default_rng(0)
    for episode in range(3):
        played = belated.environments.play(world, agent.plan(rng), seed=0, episode=episode)
        agent.learn([belated.Feedback(episode, played)])
    belated.save_agent(tmp_path / "agent.npz", agent, rng)
    copy, copied_rng = belated.load_agent(tmp_path / "agent.npz")
    assert copied_rng is not None
    assert str(copy.problem) == str(world.problem)
    assert copy.problem.features == world.problem.features
    for episode in range(3, 6):
        one = belated.environments.play(world, agent.plan(rng), seed=0, episode=episode)
        other = belated.environments.play(world, copy.plan(copied_rng), seed=0, episode=episode)
        np.testing.assert_array_equal(one.actions, other.actions)
        agent.learn([belated.Feedback(episode, one)])
        copy.learn([belated.Feedback(episode, other)])


def test_features_that_have_no_plain_values_are_refused_and_nothing_is_written(tmp_path: Path) -> None:
    world = belated.GymEnvironment("MountainCar-v0", horizon=20)
    problem = replace(world.problem, features=SimpleNamespace(size=4, encode=world.encode))
    made: Any = belated.AutoPSVI().start(world.problem)
    agent = SimpleNamespace(settings=made.settings, memory=made.memory, restore=made.restore, problem=problem)
    with pytest.raises(belated.InvalidInputError, match=r"of belated\.features"):
        belated.save_agent(tmp_path / "agent.npz", agent)
    assert not list(tmp_path.iterdir())


def test_the_discount_of_the_problem_is_kept(tmp_path: Path) -> None:
    agent = DelayedPSVI().start(replace(belated.RiverSwim().problem, discount=0.9))
    belated.save_agent(tmp_path / "agent.npz", agent)
    assert belated.load_agent(tmp_path / "agent.npz").agent.problem.discount == 0.9
