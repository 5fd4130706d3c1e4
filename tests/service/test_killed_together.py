"""Three processes on one PostgreSQL server, killed at random: nothing acknowledged is lost, nothing counts twice."""

from __future__ import annotations

import http.client
import random
import subprocess
import threading
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from killing import THREADS, Known, Load, check
from serving import MODELS, Line, ask, free_port, start

from belated.decisions import Model
from belated.decisions._store.postgres import PostgresStore


class Roaming(Load):
    """A caller who sends to any of the processes and, if it gets no answer, sends the very same to another."""

    def __init__(self, known: Known, ports: list[int], seed: int) -> None:
        super().__init__(known, ports[0], seed)
        self.ports, self.stop, self.again = ports, threading.Event(), 0

    def run(self) -> None:
        try:
            while not self.stop.is_set():
                if self.rng.random() < 0.2:
                    self.move()
                self.step()
                self.done += 1
        except Exception as error:
            self.wrong.append(repr(error))
        self.line.close()

    def move(self) -> None:
        self.line.close()
        self.line = Line(self.rng.choice(self.ports))

    def ask(self, path: str, body: Any) -> Any:
        self.unanswered = False
        while True:
            try:
                return super().ask(path, body)
            except (OSError, http.client.HTTPException):
                self.unanswered, self.again = True, self.again + 1
                self.stop.wait(0.02)
                self.move()


class Fleet:
    """The processes; each has its port for good."""

    def __init__(self, folder: Path, address: str, size: int) -> None:
        (folder / "models.toml").write_text(MODELS)
        self.folder, self.address = folder, address
        self.ports = [free_port() for _ in range(size)]
        self.processes: list[subprocess.Popen[bytes]] = []

    def start(self, place: int) -> None:
        process = start(self.folder, self.ports[place], store=self.address)
        self.processes[place : place + 1] = [process]

    def kill(self, place: int) -> None:
        self.processes[place].kill()
        self.processes[place].wait()


def attack(folder: Path, address: str, processes: int, kills: int, seed: int) -> tuple[Known, int]:
    """Kill one of the processes, or two, or all, again and again; return what is known and what was sent again."""
    fleet, known, rng = Fleet(folder, address, processes), Known(), random.Random(seed)
    for place in range(processes):
        fleet.start(place)
    loads = [Roaming(known, fleet.ports, rng.getrandbits(32)) for _ in range(THREADS)]
    try:
        for load in loads:
            load.start()
        done = 0
        while done < kills:
            threading.Event().wait(rng.uniform(0.1, 0.8))
            struck = rng.sample(range(processes), min(rng.choice([1, 1, 2, processes]), kills - done))
            for place in struck:
                fleet.kill(place)
            for place in struck:
                fleet.start(place)
            done += len(struck)
        for load in loads:
            load.stop.set()
        for load in loads:
            load.join()
        assert [wrong for load in loads for wrong in load.wrong] == []
        check(known, fleet.ports[0], known.actions)
        same_everywhere(fleet, known)
    finally:
        for load in loads:
            load.stop.set()
        for place in range(len(fleet.processes)):
            fleet.kill(place)
    return known, sum(load.again for load in loads)


def same_everywhere(fleet: Fleet, known: Known) -> None:
    """Compare each live process with the state computed again from the log, and with what was acknowledged."""
    store = PostgresStore(fleet.address)
    try:
        model = Model("ads", None, store)
        assert model.verify() == []
        # Everything was sent until it was answered: what is stored is what was acknowledged, not one more.
        assert {entry.id for entry in model.log()} == set(known.actions)
        for port in fleet.ports:
            ask(port, "/v1/models/ads/feedback", {"id": next(iter(known.actions)), "event": "last", "reward": 1.0})
        model.catch_up()
        for port in fleet.ports:
            ask(port, "/v1/models/ads/feedback", {"id": next(iter(known.actions)), "event": "last", "reward": 1.0})
            live = ask(port, "/v1/models/ads")["weights"]
            for name, weights in model.weights().items():
                np.testing.assert_array_equal(live[name], weights)
    finally:
        store.close()


def test_two_processes_that_are_killed_lose_nothing(tmp_path: Path, postgres_address: str) -> None:
    known, _ = attack(tmp_path, postgres_address, processes=2, kills=2, seed=1)
    assert any(known.rewards.values())


@pytest.mark.slow
def test_thirty_kills_of_three_processes_lose_nothing(tmp_path: Path, postgres_address: str) -> None:
    known, again = attack(tmp_path, postgres_address, processes=3, kills=30, seed=2)
    rewards = sum(map(len, known.rewards.values()))
    print(f"\n30 kills: {len(known.actions)} decisions and {rewards} rewards acknowledged, {again} requests sent again")
    assert again >= 10 and len(known.actions) > 1_000
