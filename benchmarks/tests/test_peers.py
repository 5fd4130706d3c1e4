"""Peers in their environments, with a fake environment and fake scripts."""

from __future__ import annotations

import os
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from belated.decisions import DecisionLearner, Unknown
from belated_studies.peer_environments import PeerError
from benchmarks import peers
from benchmarks.measure import Measure
from benchmarks.peers import TimedPeer
from benchmarks.problems import QUICK, Effort

TINY: Effort = replace(QUICK, repeats=3, rounds=6, peer_episodes=3)

pytestmark = pytest.mark.skipif(os.name == "nt", reason="the fake environment is a link to this interpreter")


def listed(home: Path) -> TimedPeer:
    """Return a peer that is not installed."""
    return TimedPeer(name="fake", script=home / "use_fake.py", against="rounds", requirements=("fake==1.0",))


def fake(home: Path, body: str) -> TimedPeer:
    """Return a peer whose environment is this interpreter and whose script is `body`."""
    peer = listed(home)
    peer.script.write_text(body, encoding="utf-8")
    python = peer.python(home)
    python.parent.mkdir(parents=True)
    python.symlink_to(sys.executable)
    (peer.folder(home) / "ready").touch()
    return peer


def measure(peer: TimedPeer, home: Path, effort: Effort = TINY) -> list[Measure]:
    return peers.measure_peer(peer, effort, lambda text: None, home)


def test_every_listed_peer_has_a_script_and_pinned_versions() -> None:
    known = peers.peers()
    assert set(known) == {"rlberry-scool", "bayesianbandits", "mabwiser", "contextualbandits", "river", "vowpalwabbit"}
    assert set(peers.TARGETS) <= set(known)
    for peer in known.values():
        assert peer.script.is_file()
        assert all("==" in each for each in peer.requirements)
        assert peer.against in ("episodes", "rounds")


def test_what_a_script_times_becomes_a_ratio_for_each_thing(tmp_path: Path) -> None:
    body = (
        'import json; print("noise"); print(json.dumps([{"what": "A", "seconds": 1e3}, {"what": "B", "seconds": 5e3}]))'
    )
    found = measure(fake(tmp_path, body), tmp_path)
    assert [each.name for each in found] == [
        f"fake: {what}, against {ours}" for what in "AB" for ours in (peers.PSLB, peers.TRUE, peers.FAST)
    ]
    first, second = found[0], found[3]
    assert len(first.values) == 3
    assert first.values[0] > 1e3
    np.testing.assert_allclose(np.array(second.values) / np.array(first.values), 5.0)
    assert "d=100, 10 actions" in first.note


@pytest.mark.parametrize(
    ("body", "reason"),
    [
        ("raise RuntimeError('it broke')", "RuntimeError: it broke"),
        ("import belated_peer_that_is_not_there", "No module named 'belated_peer_that_is_not_there'"),
        ("print('nothing')", "use_fake.py printed no figures"),
        ("print(3)", "use_fake.py printed no figures"),
        ('print(\'[{"what": "A"}]\')', "use_fake.py printed no figures"),
    ],
)
def test_a_peer_that_fails_is_reported_with_its_reason(tmp_path: Path, body: str, reason: str) -> None:
    (found,) = measure(fake(tmp_path, body), tmp_path)
    assert found.values == ()
    assert found.note.startswith("not measured: ")
    assert reason in found.note


def test_a_peer_that_cannot_be_installed_is_reported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def install(peer: TimedPeer, home: Path) -> None:
        raise PeerError("ERROR: No matching distribution found for fake==1.0")

    monkeypatch.setattr(peers, "install", install)
    peer, told = listed(tmp_path), list[str]()
    (found,) = peers.measure_peer(peer, replace(TINY, patient=True), told.append, tmp_path)
    assert found.note == "not measured: ERROR: No matching distribution found for fake==1.0"
    assert told == [f"installing fake into {peer.folder(tmp_path)}"]


def test_a_quick_run_installs_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(peers, "install", lambda *asked: pytest.fail(str(asked)))
    (found,) = measure(listed(tmp_path), tmp_path)
    assert found.note == "not measured: it is not installed yet; run without --quick"


def test_the_bandit_stream_is_right_for_one_model_and_for_one_each() -> None:
    arrays, _ = peers.rounds(replace(TINY, rounds=2000))
    contexts, signs, rewards = arrays["contexts"], arrays["signs"], arrays["rewards"]
    table = contexts[:, np.newaxis] * signs
    shared = np.linalg.lstsq(table.reshape(-1, 100), rewards.ravel(), rcond=None)[0]
    each = np.linalg.lstsq(contexts, rewards, rcond=None)[0]
    assert np.abs(rewards - table @ shared).std() < 0.12
    assert np.abs(rewards - contexts @ each).std() < 0.12
    np.testing.assert_allclose(each.T, signs * shared, atol=0.3)
    learner = DecisionLearner(100, silence=Unknown(), noise=0.1)
    earned = []
    for t in range(400):
        decision = learner.decide(table[t])
        learner.feedback(decision.id, float(rewards[t, decision.action]))
        earned.append(rewards[t, decision.action])
    assert np.mean(earned[200:]) > rewards.mean() + 1.0  # it can be learned


def test_the_mdp_for_peers_is_the_same_at_every_step(tmp_path: Path) -> None:
    arrays, (ours,) = peers.episodes(TINY)
    assert arrays["features"].shape == (2, 50, 10)
    assert arrays["transitions"].shape == (2, 50, 2)
    assert arrays["rewards"].shape == (2, 50)
    np.testing.assert_allclose(arrays["transitions"].sum(axis=-1), 1.0)
    assert ours.time() > 0
    assert "one episode of 3" in ours.unit
