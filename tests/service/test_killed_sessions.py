"""Killed at any moment under a load of sessions: nothing acknowledged is lost or counts twice, and members stay.

The callers send steps, ends, rewards, corrections and cancellations, and send the very same again until it is answered.
So what is stored in the end is what was acknowledged, not one more.
"""

from __future__ import annotations

import http.client
import random
import subprocess
import threading
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from serving import Line, ask, free_port, start

from belated.decisions import Model
from belated.decisions._sessions import member_of
from belated.decisions._store import open_store

MODELS = """
[models.shop]
horizon = 5
actions = ["a", "b", "c"]
categories = ["page"]
hashed = 4
silence = {kind = "unknown"}
floor = 0.0
"""
THREADS = 4


class Visit:
    """What a caller knows of one session."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.steps: list[tuple[str, str]] = []
        self.ended: bool | None = None
        self.cancelled = False
        self.rewards: dict[tuple[str, str], tuple[int, float]] = {}
        """By id, empty for that of the session, and event: version and reward."""


class Caller(threading.Thread):
    """Plays sessions with any of the processes; what gets no answer is sent again, the very same."""

    def __init__(self, ports: list[int], seed: int) -> None:
        super().__init__()
        self.ports, self.rng, self.stop = ports, random.Random(seed), threading.Event()
        self.line = Line(ports[0])
        self.visits: list[Visit] = []
        self.wrong: list[Any] = []
        self.again = self.done = 0
        self.prefix = f"{seed:x}"

    def run(self) -> None:
        try:
            while not self.stop.is_set():
                self.act()
                self.done += 1
        except Exception as error:
            self.wrong.append(repr(error))
        self.line.close()

    def ask(self, what: str, body: Any, *also: str) -> Any:
        """Return the answer; `also` are statuses that are right if it had been sent before."""
        sent_before = False
        while True:
            try:
                code, found = self.line.ask(f"/v1/models/shop/{what}", body)
                if code == 503:
                    time.sleep(0.02)
                    continue
            except (OSError, http.client.HTTPException):
                sent_before, self.again = True, self.again + 1
                time.sleep(0.02)
                self.line.close()
                self.line = Line(self.rng.choice(self.ports))
                continue
            right = {"accepted", *(also if sent_before else ())}
            if code != 200 or found.get("status", "accepted") not in right:
                self.wrong.append((what, body, code, found))
            return found

    def act(self) -> None:
        open_ones = [each for each in self.visits[-20:] if each.ended is None and not each.cancelled]
        what = self.rng.random()
        if not open_ones or what < 0.1:
            self.visits.append(Visit(f"{self.prefix}-{len(self.visits)}"))
            self.decide(self.visits[-1])
        elif what < 0.55:
            self.decide(self.rng.choice(open_ones))
        elif what < 0.65:
            visit = self.rng.choice(open_ones)
            terminal = self.rng.random() < 0.5
            self.ask("end", {"session": visit.name, "terminal": terminal}, "duplicate")
            visit.ended = terminal
        elif what < 0.95:
            self.reward(self.rng.choice(self.visits[-20:]))
        else:
            visit = self.rng.choice(self.visits[-20:])
            if not visit.cancelled:
                self.ask("cancel", {"session": visit.name}, "duplicate")
                visit.cancelled = True

    def decide(self, visit: Visit) -> None:
        page, key = f"p{self.rng.randrange(3)}", f"{self.rng.getrandbits(64):x}"
        body = {"session": visit.name, "context": {"page": page}, "key": key}
        found = self.ask("decide", body)
        if found.get("step") != len(visit.steps):
            self.wrong.append(("the wrong step", visit.steps, found))
        visit.steps.append((found["id"], found["action"]))
        if len(visit.steps) == 5:
            visit.ended = False
        if self.rng.random() < 0.1 and self.ask("decide", body) != found:
            self.wrong.append(("another answer for the same key", found))

    def reward(self, visit: Visit) -> None:
        if visit.cancelled:
            return
        made = "" if self.rng.random() < 0.5 else self.rng.choice(visit.steps)[0]
        event = self.rng.choice(["first", "second"])
        known = visit.rewards.get((made, event))
        sent = 0 if known is None else known[0] + 1, float(self.rng.randrange(2))
        target = {"id": made} if made else {"session": visit.name}
        self.ask("feedback", {**target, "event": event, "version": sent[0], "reward": sent[1]}, "duplicate")
        visit.rewards[made, event] = sent


class Fleet:
    """The processes on one store; each has its port for good."""

    def __init__(self, folder: Path, store: str, size: int) -> None:
        (folder / "models.toml").write_text(MODELS)
        self.folder, self.store = folder, store
        self.ports = [free_port() for _ in range(size)]
        self.processes: list[subprocess.Popen[bytes]] = []

    def start(self, place: int) -> None:
        self.processes[place : place + 1] = [start(self.folder, self.ports[place], store=self.store)]

    def kill(self, place: int) -> None:
        self.processes[place].kill()
        self.processes[place].wait()


def planned(port: int) -> int:
    """Wait until there is a set of plans."""
    deadline = time.monotonic() + 120.0
    while (place := ask(port, "/v1/models/shop")["sessions"]["plan"]) is None:
        assert time.monotonic() < deadline, "no set of plans was drawn"
        time.sleep(0.1)
    return int(place)


def attack(folder: Path, store: str, processes: int, kills: int, seed: int, longest: float) -> list[Caller]:
    """Kill one of the processes, or two, or all, again and again, and compare what is stored with what is known."""
    fleet, rng = Fleet(folder, store, processes), random.Random(seed)
    for place in range(processes):
        fleet.start(place)
    planned(fleet.ports[0])
    callers = [Caller(fleet.ports, rng.getrandbits(32)) for _ in range(THREADS)]
    try:
        for caller in callers:
            caller.start()
        done = 0
        while done < kills:
            time.sleep(rng.uniform(0.1, longest))
            struck = rng.sample(range(processes), min(rng.choice([1, 1, 2, processes]), processes, kills - done))
            for place in struck:
                fleet.kill(place)
            for place in struck:
                fleet.start(place)
            done += len(struck)
        for caller in callers:
            caller.stop.set()
        for caller in callers:
            caller.join()
        assert [wrong for caller in callers for wrong in caller.wrong] == []
    finally:
        for caller in callers:
            caller.stop.set()
        for place in range(len(fleet.processes)):
            fleet.kill(place)
    compare(store if "://" in store else str(folder / store), [visit for each in callers for visit in each.visits])
    return callers


def compare(where: str, visits: list[Visit]) -> None:
    store = open_store(where)
    try:
        model = Model("shop", None, store)
        assert model.verify() == []  # the state and the plans, computed again from the log, to the bit
        assert model.summary()["decisions"] == sum(len(visit.steps) for visit in visits)
        for visit in visits:
            found = model.lookup_session(visit.name)
            assert [(each.id, each.action) for each in found.steps] == visit.steps, visit.name
            status = "cancelled" if visit.cancelled else "open" if visit.ended is None else "ended"
            assert (found.status, found.terminal) == (status, bool(visit.ended))
            counted = {
                ("" if each.id != step.id else each.id, each.event): (each.version, each.reward)
                for step in found.steps
                for each in model.store.events(step.id)
                if each.counted and each.kind == "reward"
            }  # of each event the last, since they are in order
            mine = {name: sent for name, sent in visit.rewards.items() if name[0]}
            assert {(step.id, event) for step in found.steps for event in ("first", "second")} >= set(counted)
            assert counted == mine
            of_session = [each.reward for each in found.steps[-1:] if each.reward is not None]
            total = sum(reward for (made, _), (_, reward) in visit.rewards.items() if made in ("", found.steps[-1].id))
            assert sum(of_session) == pytest.approx(total)
            rows = store.steps("shop", visit.name)
            assert len({row.plan for row in rows}) == 1
            for row in rows:  # without a floor every action is one that its member would take
                if row.votes is not None:
                    votes = np.frombuffer(row.votes)
                    assert votes[member_of("shop", 0, visit.name, len(votes))] > 0.0
    finally:
        store.close()


def say(name: str, callers: list[Caller]) -> None:
    visits = [visit for caller in callers for visit in caller.visits]
    steps, rewards = sum(len(each.steps) for each in visits), sum(len(each.rewards) for each in visits)
    print(
        f"\n{name}: {len(visits)} sessions with {steps} steps and {rewards} rewards acknowledged, none lost, none "
        f"twice; {sum(caller.again for caller in callers)} requests sent again"
    )


@pytest.mark.slow
def test_two_kills_lose_nothing(tmp_path: Path) -> None:
    callers = attack(tmp_path, "d.db", processes=1, kills=2, seed=1, longest=0.5)
    assert sum(len(visit.steps) for caller in callers for visit in caller.visits) > 10


@pytest.mark.slow
def test_a_hundred_kills_lose_nothing_of_sessions(tmp_path: Path) -> None:
    callers = attack(tmp_path, "d.db", processes=1, kills=100, seed=2, longest=2.0)
    say("100 kills", callers)
    assert sum(len(visit.steps) for caller in callers for visit in caller.visits) > 500


@pytest.mark.slow
def test_thirty_kills_on_a_server_lose_nothing_of_sessions(tmp_path: Path, postgres_address: str) -> None:
    callers = attack(tmp_path, postgres_address, processes=2, kills=30, seed=3, longest=2.0)
    say("30 kills on PostgreSQL", callers)
    assert sum(len(visit.steps) for caller in callers for visit in caller.visits) > 500
