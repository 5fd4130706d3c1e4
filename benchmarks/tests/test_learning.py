"""Tables played as bandits: what all agents are given, and how they are compared, with fake peers."""

from __future__ import annotations

import os
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from belated_studies.peer_environments import PeerError
from benchmarks import learning
from benchmarks.measure import at_least
from benchmarks.peer_scripts import tables
from benchmarks.peer_scripts.tables import Contestant, Run
from benchmarks.peers import SCRIPTS, TimedPeer
from benchmarks.problems import FULL, QUICK

SIDES = np.array([[-1.0], [1.0]]), np.array([0, 1])


def hand(answers: list[int], arrives: list[int]) -> Run:
    """Return a run of which nothing matters but what is right and when that is told."""
    return Run(np.ones((len(answers), 1)), np.array(answers), np.array(arrives), 2, 0, 0)


def test_rewards_are_told_when_they_arrive_and_lost_ones_never() -> None:
    told: list[tuple[int, int, int, float]] = []
    turn = [0]

    def decide(t: int) -> int:
        turn[0] = t
        return t % 2

    agent = Contestant("odd", decide, lambda t, action, reward: told.append((turn[0] + 1, t, action, reward)))
    assert tables.play(agent, hand([0, 0, 1, 1], [3, 2, -1, 9])) == [1, 0, 0, 1]
    assert told == [(2, 1, 1, 0.0), (3, 0, 0, 1.0)]  # before which round, of which round


def test_all_are_given_a_constant_and_rewards_as_late_as_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(learning, "ROUNDS", 20_000)
    given = learning.run(*SIDES, 0)
    assert (given.rows[:, 0] == 1.0).all()
    assert (given.rows[:, 1] == 2.0 * given.answers - 1.0).all()
    came = given.arrives >= 0
    assert (~came).mean() == pytest.approx(learning.MISSING, abs=0.01)
    waited = (given.arrives - np.arange(20_000))[came]
    assert waited.min() >= 1
    assert waited.mean() == pytest.approx(learning.DELAY, rel=0.05)


def test_classes_move_on_halfway(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(learning, "ROUNDS", 600)
    monkeypatch.setattr(learning, "DELAY", 5)
    runs = [learning.run(*SIDES, 0, drift) for drift in (False, True)]
    plain, drifted = learning.play(runs)
    assert (plain[:300] == drifted[:300]).all()
    assert plain[300:].mean() > 0.9 > 0.5 > drifted[300:350].mean()
    faded = learning.play([replace(runs[1], half_life=20)])[0]
    assert faded[-100:].mean() > 0.9
    assert faded[300:].sum() > 30 + drifted[300:].sum()  # what is forgotten is learned anew sooner


def test_a_difference_is_judged_by_the_errors_of_the_differences() -> None:
    theirs = np.array([10.0, 20.0, 30.0, 40.0])
    for loss, met in ((0.9, True), (1.2, False)):
        ours = theirs - loss + np.array([1.0, -1.0, 1.0, -1.0])  # s.e. of the difference: √(4/3)/2
        shown, above = learning._beside("wine", ours, "them", theirs, FULL)
        assert (shown.name, shown.values, shown.target) == ("wine: them", (25.0,), None)
        assert (above.name, above.target, above.met) == ("wine: ours less them", at_least(-1.15), met)
        assert above.values == pytest.approx((-loss,))
        assert above.note.startswith("mean ± 1.15 (two standard errors)")
    assert [each.target for each in learning._beside("wine", ours, "them", theirs, QUICK)] == [None, None]


def test_who_did_not_play_is_told_as_unmeasured(tmp_path: Path) -> None:
    found = learning._others([hand([0], [1])], QUICK, lambda text: None, tmp_path)
    reason = "it is not installed yet; run without --quick"
    assert found == dict.fromkeys(("vowpalwabbit", "bayesianbandits"), reason)
    (told,) = learning._beside("wine", np.ones(3), "them", reason, FULL)
    assert (told.values, told.note) == ((), f"not measured: {reason}")
    for script in learning.OTHERS.values():
        assert (SCRIPTS / script).is_file()


ALWAYS_ZERO = """
from benchmarks.peer_scripts.tables import Contestant, main
main(lambda run: [Contestant("zero", lambda t: 0, lambda t, action, reward: None)])
"""


@pytest.mark.skipif(os.name == "nt", reason="the fake environment is a link to this interpreter")
def test_a_script_plays_the_runs_it_is_given(tmp_path: Path) -> None:
    peer = TimedPeer(name="fake", script=tmp_path / "learn_fake.py", against="rounds", requirements=("fake==1.0",))
    peer.python(tmp_path).parent.mkdir(parents=True)
    peer.python(tmp_path).symlink_to(sys.executable)
    peer.script.write_text(ALWAYS_ZERO, encoding="utf-8")
    runs = [hand([0, 1, 1, 0], [1, 2, -1, 4]), hand([1, 1, 0, 0], [1, 2, 3, 4])]
    found = learning.ask(peer, tmp_path, runs)
    assert {what: right.tolist() for what, right in found.items()} == {"zero": [[1, 0, 0, 1], [0, 0, 1, 1]]}
    peer.script.write_text("print('{\"zero\": [[1]]}')", encoding="utf-8")
    with pytest.raises(PeerError, match=r"learn_fake\.py printed no answers"):
        learning.ask(peer, tmp_path, runs)
