"""Sessions that are played by anybody: what they are told and when, by hand and with fake players."""

from __future__ import annotations

import asyncio
import subprocess
import sys
import tomllib
from dataclasses import replace

import numpy as np
import pytest

from belated.delays import Constant
from benchmarks import session_players
from benchmarks.service import toml
from benchmarks.session_players import REWARDS, Elsewhere, Played, Single, play, settings_of, worlds

FUNNEL = worlds()["shop funnel, H = 6"]


def test_single_decisions_are_told_a_number_for_each_step() -> None:
    found = {name: credit(np.array([1.0, 0.0, 2.0])).tolist() for name, credit in REWARDS.items()}
    assert found == {
        "immediate reward": [1.0, 0.0, 2.0],
        "suffix mean": [1.0, 1.0, 2.0],  # of 3, 2 and 1 steps
        "suffix sum": [3.0, 2.0, 2.0],
    }


class Noting:
    """Takes action 0 always, and notes what it hears."""

    def __init__(self) -> None:
        self.opened: list[int] = []
        self.open: set[int] = set()
        self.most = 0
        self.ended: list[Played] = []
        self.told: dict[int, int] = {}
        """How many had opened when a session's rewards were told."""

    async def ready(self) -> None:
        pass

    async def act(self, session: Played) -> tuple[str, int]:
        if not session.actions:
            self.opened.append(session.number)
            self.open.add(session.number)
            self.most = max(self.most, len(self.open))
        await asyncio.sleep(0)
        return f"{session.number}.{len(session.actions)}", 0

    async def end(self, session: Played) -> None:
        self.open.remove(session.number)
        self.ended.append(session)

    async def learn(self, session: Played) -> None:
        self.told[session.number] = len(self.opened)


def test_sixteen_are_open_at_once_and_rewards_are_told_as_late_as_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(session_players, "DELAY", Constant(30))
    player = Noting()
    paid = play(FUNNEL, player, 200, 0)
    assert player.opened == list(range(200))
    assert player.most == 16
    assert len(player.told) > 100
    assert min(opened - number for number, opened in player.told.items()) > 30
    for each in player.ended:
        assert len(each.observations) == len(each.actions) + 1 == len(each.rewards) + 1 == len(each.ids) + 1
        assert each.terminal or len(each.actions) == 6
        assert paid[each.number] == sum(each.rewards)
        assert 4 not in each.observations[:-1]  # nobody is asked about a visitor who has left


def test_single_decisions_learn_what_they_are_told() -> None:
    returns = {name: play(FUNNEL, Single(FUNNEL, credit, 0), 600, 0)[-200:].mean() for name, credit in REWARDS.items()}
    assert returns["suffix sum"] > 1.2 * returns["immediate reward"]


SCRIPT = """
import json, sys
known = {}
for line in sys.stdin:
    asked = json.loads(line)
    if "terms" in asked:
        known[asked["id"]] = asked["terms"]
        print(1 if asked["terms"] == ["checkout"] else 0, flush=True)
    else:
        assert set(asked["rewards"]) <= set(known), asked
        print(len(asked["rewards"]), flush=True)
"""


def test_a_peer_is_asked_line_by_line() -> None:
    pipe = subprocess.PIPE
    with subprocess.Popen([sys.executable, "-c", SCRIPT], stdin=pipe, stdout=pipe, text=True) as process:
        noted = Noting()
        player = Elsewhere(FUNNEL, REWARDS["suffix sum"], process)
        paid = play(FUNNEL, Ended(player, noted), 60, 0)
    assert len(noted.ended) == 60
    assert paid.sum() > 0
    steps = [pair for each in noted.ended for pair in zip(each.observations, each.actions, strict=False)]
    assert {action for state, action in steps if state == 3} == {1}
    assert {action for state, action in steps if state != 3} == {0}


class Ended:
    """Another player, whose sessions are kept."""

    def __init__(self, player: Elsewhere, noted: Noting) -> None:
        self.ready, self.act, self.learn, self._noted = player.ready, player.act, player.learn, noted

    async def end(self, session: Played) -> None:
        self._noted.ended.append(session)


def test_settings_are_written_as_toml() -> None:
    for world in worlds().values():
        table = settings_of(replace(world), 3)
        assert tomllib.loads(f"models = {toml({'played': table})}") == {"models": {"played": table}}
