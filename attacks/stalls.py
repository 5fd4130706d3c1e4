"""A PostgreSQL server that hangs: 503 in bounded time, not ready, an end at SIGTERM, and nothing twice afterwards."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import numpy as np

from attacks.servers import Service, backends, postgres
from attacks.tally import Tally

MODELS = '[models.ads]\nactions = ["a", "b"]\nfeatures = ["x"]\nsilence = {kind = "unknown"}\n'
CONTEXT = {"context": {"x": 0.5}}
ANSWERED, READY, ENDED = 45.0, 25.0, 60.0
"""Seconds within which a request is refused, the service is not ready, and it ends."""


def attack(tries: int, folder: Path, rng: np.random.Generator, tally: Tally) -> None:
    """Stop the server's processes at random, `tries` times, with a request under way, and end the service meanwhile."""
    with postgres() as address:
        for number in range(tries):
            if tally.left():
                service = Service(folder, address, MODELS)
                try:
                    _attack(service, address, number, rng, tally)
                finally:
                    service.kill()


def _attack(service: Service, address: str, number: int, rng: np.random.Generator, tally: Tally) -> None:
    key = f"key {number}"
    service.ask("/v1/models/ads/decide", CONTEXT)
    stopped = backends(address)
    for process in stopped:
        os.kill(process, signal.SIGSTOP)
    try:
        with tally.attempt(f"{number}: a request to a server that hangs"):
            began = time.monotonic()
            code, found = service.ask("/v1/models/ads/decide", {**CONTEXT, "key": key}, patience=ANSWERED)
            assert (code, time.monotonic() - began < ANSWERED) == (503, True), (code, found)
        if number % 2:
            with tally.attempt(f"{number}: ready although the server hangs"):
                _hang(service, address)
                _until(lambda: service.ask("/health/ready")[0] == 503, READY)
            with tally.attempt(f"{number}: SIGTERM or SIGHUP while the server hangs"):
                service.stop(int(rng.choice([signal.SIGTERM, signal.SIGHUP])), ENDED)
            return
    finally:
        for process in {*stopped, *backends(address)}:
            with suppress(ProcessLookupError):  # it has ended meanwhile
                os.kill(process, signal.SIGCONT)
    with tally.attempt(f"{number}: it goes on by itself, and nothing is twice"):
        _until(lambda: service.ask("/v1/models/ads/decide", {**CONTEXT, "key": key})[0] == 200, ANSWERED)
        made = [service.ask("/v1/models/ads/decide", {**CONTEXT, "key": key})[1]["id"] for _ in range(2)]
        assert made[0] == made[1]
        assert service.ask("/health/ready")[0] == 200


def _hang(service: Service, address: str) -> None:
    """Stop what the service talks to now."""
    for process in backends(address):
        os.kill(process, signal.SIGSTOP)


def _until(holds: Callable[[], bool], seconds: float) -> None:
    deadline = time.monotonic() + seconds
    while not holds():
        assert time.monotonic() < deadline, f"not within {seconds:.0f} seconds"
        time.sleep(0.1)
