"""Peers: what the script is given, what becomes of its answers and of its failures."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from belated.environments import GymEnvironment
from belated.runner import simulate
from belated_studies.exploration import peers
from belated_studies.exploration.peers import DQN, PPO, SEEDS, Game, PeerRun, measurements, returns_of, runs_of, task
from belated_studies.exploration.problems import FULL, POISSON, QUICK, Bar, Problem
from belated_studies.peer_environments import PeerError
from belated_studies.study import Measurement, Played

CART = Problem(
    name="a cart",
    label="cart",
    make=partial(GymEnvironment, "CartPole-v1", horizon=20),
    episodes=6,
    bars={"poisson-10": Bar(value=2.0)},
    others={},
)
GAME = Game("CartPole-v1", steps=20)
SIZE = replace(FULL, seeds=2)


def measurement(agent: str = DQN) -> Measurement[Any]:
    (found,) = [each for each in measurements({"cart": GAME}, lambda: (CART,)) if each.name == f"peers-cart-{agent}"]
    return found


@pytest.fixture
def answers(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[list[Any]]:
    """What the script answers, one after the other; everything is installed."""
    given: list[Any] = []

    def run_script(peer: Any, home: Path, data: Path, *, timeout: float) -> Any:
        assert json.loads(data.read_text(encoding="utf-8"))["game"]["id"] == "CartPole-v1"
        answer = given.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return answer

    monkeypatch.setenv("BELATED_CACHE", str(tmp_path))
    monkeypatch.setattr(peers, "prepare", lambda home: None)
    monkeypatch.setattr(peers, "run_script", run_script)
    yield given


def test_the_script_is_given_the_episodes_and_the_delays_of_our_runs() -> None:
    distribution = POISSON["poisson-10"]
    wanted = task(replace(CART, episodes=40), GAME, DQN, distribution, 3, FULL)
    rows = simulate(CART.world, RandomPolicyOnSamples(), distribution, episodes=40, seed=3)
    assert wanted["delays"] == rows["delay"].to_list()
    env = CART.world._env
    first = [env.reset(seed=seed)[0].tolist() for seed in wanted["seeds"]]
    again = [CART.world.reset(seed=3, episode=episode).tolist() for episode in range(40)]
    assert first == again
    assert json.loads(json.dumps(wanted)) == wanted
    assert (wanted["settings"]["train_freq"], wanted["total"]) == (256, 50_000)


class RandomPolicyOnSamples:
    """Learns nothing, in an environment without a table."""

    plays = "features"

    def start(self, problem: Any) -> Any:
        return self

    def learn(self, batch: Any) -> None:
        pass

    def plan(self, rng: np.random.Generator) -> Any:
        return self

    def act(self, step: int, state: Any) -> int:
        return 0


def test_defaults_are_called_defaults() -> None:
    lake = Game("FrozenLake-v1")
    assert task(replace(CART, episodes=7), lake, PPO, POISSON["poisson-10"], 0, FULL)["settings"] == {}
    assert lake.settings(DQN, CART) == (6 * 20, {})
    assert lake.source(DQN) == "its defaults, not searched for"
    assert GAME.source(PPO) == "RL-Zoo's settings"


def test_a_run_for_each_seed_and_none_in_a_quick_look(answers: list[Any]) -> None:
    answers += [{"returns": [1.0] * 6, "milliseconds": 2.0}, {"returns": [3.0] * 6, "milliseconds": 4.0}]
    runs = list(measurement().measure(SIZE))
    assert [run[:4] for run in runs] == [("cart", "poisson-10", DQN, seed) for seed in range(2)]
    assert measurement().lasting(runs)
    played = Played(SIZE, {}, {}, {"peers-cart-dqn": runs, "times": [(1, 2)]})
    found = runs_of(played, CART, "poisson-10")
    assert list(found) == [DQN]
    np.testing.assert_array_equal(returns_of(found[DQN]), [[1.0] * 6, [3.0] * 6])
    assert runs_of(played, CART, "none") == {}
    assert list(measurement().measure(QUICK)) == []


def test_no_more_seeds_than_are_stated(answers: list[Any]) -> None:
    answers += [{"returns": [1.0] * 6, "milliseconds": 2.0}] * FULL.seeds
    assert len(list(measurement(PPO).measure(FULL))) == SEEDS < FULL.seeds


@pytest.mark.parametrize("bad", [PeerError("it broke"), {"returns": [1.0], "milliseconds": 1.0}, [], {"x": 1}])
def test_a_run_that_fails_is_told_and_tried_again_next_time(answers: list[Any], bad: Any) -> None:
    answers += [{"returns": [1.0] * 6, "milliseconds": 2.0}, bad]
    good, failed = list(measurement().measure(SIZE))
    assert (good.failed, failed.returns) == ("", [])
    assert failed.failed in ("it broke", "use_stable_baselines3.py did not play every episode")
    assert not measurement().lasting([good, failed])
    assert returns_of([good, failed]).shape == (1, 6)
    assert returns_of([failed]).size == 0


def test_what_could_not_be_installed_is_not_tried_again_at_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tried: list[Path] = []

    def install(peer: Any, home: Path) -> None:
        tried.append(home)
        raise PeerError("ERROR: no network")

    monkeypatch.setattr(peers, "install", install)
    monkeypatch.setenv("BELATED_CACHE", str(tmp_path))
    for agent in (DQN, PPO):
        (run,) = measurement(agent).measure(SIZE)
        assert run == PeerRun(
            "cart", "poisson-10", agent, 0, [], None, GAME.source(agent), "it could not be installed: ERROR: no network"
        )
    assert tried == [tmp_path / "peers"]


def test_versions_are_pinned_and_the_script_is_there() -> None:
    assert all("==" in each for each in peers.PEER.requirements)
    assert peers.PEER.script.is_file()
