"""Other packages see the patients that our agents see, and are told when a reward is certain."""

from __future__ import annotations

import sys
from pathlib import Path

import invented
import pytest

from belated.agents import FixedPolicy
from belated.delays import Constant
from belated.environments.trials import GeneratedTrial
from belated.runner import simulate
from belated_studies.peer_environments import Peer, PeerError
from belated_studies.trials import peers
from belated_studies.trials.peers import ARTEFACT, PeerRegret, asked, measured, rounds
from belated_studies.trials.settings import AGE, FIRST_SEED, QUICK, Case, Size

SIZE = Size(name="tiny", seeds=3, peer_seeds=2)
CASE = Case("speeds", 60, 1.4, recorded=False)


def test_the_patients_are_those_of_a_run() -> None:
    trial = GeneratedTrial("speeds", rounds=40, told=True)
    drawn = rounds(trial, 80, seed=3)
    for arm in range(trial.actions):
        rows = simulate(trial, FixedPolicy(actions=[[arm]]), Constant(0), episodes=80, seed=3)
        assert drawn.rewards[:, arm].tolist() == rows["sampled_return"].to_list()
        assert drawn.delays[:, arm].tolist() == rows["delay"].to_list()


def peer(tmp_path: Path, printed: str) -> tuple[Peer, Path]:
    """Return a package that is there already: this interpreter with a script that prints what it is told to."""
    script = tmp_path / "script.py"
    script.write_text(f"import numpy as np, sys, json\ngiven = np.load(sys.argv[1])\nprint({printed})\n")
    made = Peer(name="ours", script=script, requirements=())
    folder = made.folder(tmp_path)
    (folder / "bin").mkdir(parents=True)
    (folder / "bin" / "python").symlink_to(sys.executable)
    (folder / "ready").touch()
    return made, tmp_path


def test_regret_is_that_of_the_arms_it_chose(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made, home = peer(tmp_path, "json.dumps(np.ones(given['rewards'].shape[:2], int).tolist())")
    monkeypatch.setattr(peers, "PEERS", {"ours": made})
    found = list(measured(SIZE, home, [CASE]))
    means = CASE.make(told=True).rewards[0, 0]
    assert [each.seed for each in found] == [FIRST_SEED, FIRST_SEED + 1]
    assert [each.regret for each in found] == pytest.approx([60 * (means.max() - means[1])] * 2)


def test_a_package_that_leaves_rounds_out_is_told_in_its_row(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made, home = peer(tmp_path, "json.dumps([[0]])")
    with pytest.raises(PeerError, match="did not choose in every round"):
        asked(made, home, [0], [rounds(CASE.make(told=True), 60, 0)])
    monkeypatch.setattr(peers, "PEERS", {"ours": made})
    (failed,) = measured(SIZE, home, [CASE])
    assert failed.regret is None
    assert "did not choose" in failed.failed
    assert list(measured(QUICK, home, [CASE])) == []  # quick: nobody plays


def test_the_table_has_theirs_beside_ours(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(peers, "CASES", [CASE])
    runs = [PeerRegret(CASE.name, "river", FIRST_SEED + i, 70.0 + 20.0 * i) for i in range(2)]
    runs.append(PeerRegret(CASE.name, "vowpalwabbit", FIRST_SEED, None, "it is broken"))
    played = invented.played(
        ARTEFACT, SIZE, lambda run: 30.0 if run.agent_label == AGE else 90.0, measured={"peers": runs}
    )
    section = ARTEFACT.section(played)
    (row,) = invented.table(section, "peers-table")
    assert row == ["speeds", "1.4", 30.0, 90.0, None, None, 80.0]
    notes = [getattr(entry, "note", "") for entry in section.tables[0].rows[0]]
    assert notes[4:6] == ["it is broken", "not played"]
    assert "speeds, 1.4 windows: river 80, ours 30" in ARTEFACT.findings(played)[0]
