"""Two services that start at the same moment, on one port or on one empty database: each serves, or says why not."""

from __future__ import annotations

import http.client
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np

from attacks.servers import Service, postgres
from attacks.serving import MODELS, free_port
from attacks.tally import NotBuiltError, Tally

PATIENCE = 60.0


def attack(tries: int, folder: Path, rng: np.random.Generator, tally: Tally) -> None:
    """Start two on one port, and then two replicas on an empty database, so many times each."""
    for number in range(tries):
        if tally.left():
            with tally.attempt(f"one port, {number}"):
                _one_port(folder / f"port {number}", float(rng.uniform(0.0, 0.3)))
    for number in range(tries):
        if tally.left():
            try:
                with postgres() as address, tally.attempt(f"one empty database, {number}"):
                    _one_database(folder / f"database {number}", address)
            except NotBuiltError as error:
                tally.notes.append(f"no database: {error}")
                return


def _one_port(folder: Path, apart: float) -> None:
    """Whoever says that it serves must be the one who is asked; the other ends with a sentence."""
    port, processes = free_port(), dict[str, subprocess.Popen[bytes]]()
    try:
        for name in "ab":
            own = folder / name
            own.mkdir(parents=True)
            (own / "models.toml").write_text(MODELS.replace("[models.ads]", f"[models.{name}]"), encoding="utf-8")
            given = ["--store", "d.db", "--config", "models.toml", "--port", str(port)]
            command = [sys.executable, "-m", "belated._cli", "serve", *given]
            with (own / "log").open("wb") as log:
                processes[name] = subprocess.Popen(command, cwd=own, stderr=log)
            time.sleep(apart)
        deadline = time.monotonic() + PATIENCE
        while all(each.poll() is None for each in processes.values()) and time.monotonic() < deadline:
            time.sleep(0.05)
        ended = [name for name, each in processes.items() if each.poll() is not None]
        assert len(ended) == 1, f"{len(ended)} of two have ended"
        told = (folder / ended[0] / "log").read_text(encoding="utf-8")
        assert processes[ended[0]].returncode == 2 and "must be a free address" in told, told[-300:]
        assert "serving at" not in told, told[-300:]
        (left,) = set(processes) - set(ended)
        assert f'"{left}"' in _models(port, deadline), "another service answers"
    finally:
        for each in processes.values():
            each.kill()
            each.wait()


def _models(port: int, deadline: float) -> str:
    """Return the names of the models of the service at a port, once it answers."""
    while True:
        line = http.client.HTTPConnection("127.0.0.1", port, timeout=PATIENCE)
        try:
            line.request("GET", "/v1/models")
            answer = line.getresponse()
            if answer.status == 200:
                return answer.read().decode()
        except OSError:
            pass
        finally:
            line.close()
        assert time.monotonic() < deadline, "nobody answers"
        time.sleep(0.05)


def _one_database(folder: Path, address: str) -> None:
    """Both must come up, and agree on what they are asked."""
    folders = [folder / name for name in "ab"]
    for own in folders:
        own.mkdir(parents=True)
    started: list[Service] = []

    def start(own: Path) -> None:
        started.append(Service(own, address, MODELS))

    try:
        with ThreadPoolExecutor(2) as two:
            list(two.map(start, folders))
        for turn in range(10):
            code, made = started[turn % 2].ask("/v1/models/ads/decide", {"context": {"x": 1.0}})
            assert code == 200, made
            told = {"id": made["id"], "reward": 1.0}
            assert started[1 - turn % 2].ask("/v1/models/ads/feedback", told)[0] == 200
        assert [each.ask("/v1/models/ads")[1]["decisions"] for each in started] == [10, 10]
    finally:
        for each in started:
            each.kill()
