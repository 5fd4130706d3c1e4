"""The script that plays trials: nothing is told early, twice or of another arm."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from belated_studies.peer_scripts import play_trials
from belated_studies.peer_scripts.play_trials import Player, main, play


def test_rewards_are_told_when_they_are_certain() -> None:
    told: list[tuple[int, int, int, float]] = []
    now = [0]

    def choose(t: int) -> int:
        now[0] = t
        return t % 2

    rewards = np.arange(10.0).reshape(5, 2)
    delays = np.array([[2, 9], [9, 0], [0, 9], [9, 5], [0, 0]])
    # what is learned before round t is noted with the round before: `now` moves when an arm is chosen
    chosen = play(Player(choose, lambda t, arm, reward: told.append((now[0] + 1, t, arm, reward))), rewards, delays)
    assert chosen == [0, 1, 0, 1, 0]
    assert told == [(2, 1, 1, 3.0), (3, 0, 0, 0.0), (3, 2, 0, 4.0)]


def test_every_run_is_printed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    data = tmp_path / "rounds.npz"
    shape = (2, 4, 3)
    np.savez(data, package="mine", seeds=np.array([5, 6]), rewards=np.zeros(shape), delays=np.zeros(shape, int))
    players = {"mine": lambda arms, seed: Player(lambda t: seed % arms, lambda *told: None)}
    monkeypatch.setattr(play_trials, "PLAYERS", players)
    monkeypatch.setattr("sys.argv", ["play_trials.py", str(data)])
    main()
    assert json.loads(capsys.readouterr().out) == [[2] * 4, [0] * 4]
