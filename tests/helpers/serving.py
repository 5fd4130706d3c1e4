"""`belated serve` as a process of its own, and a plain client for it."""

from __future__ import annotations

import http.client
import json
import socket
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

MODELS = """
[models.ads]
actions = ["a", "b", "c"]
features = ["x", "y"]
silence = {kind = "unknown"}
"""
CONTEXT = {"context": {"x": 0.3, "y": 1.0}}
PATIENCE = 60.0


def free_port() -> int:
    """Return a port on which nobody listens now."""
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return int(found.getsockname()[1])


class Line:
    """One connection to a service; not for several threads."""

    def __init__(self, port: int) -> None:
        self._http = http.client.HTTPConnection("127.0.0.1", port, timeout=PATIENCE)

    def ask(self, path: str, body: Any = None) -> tuple[int, Any]:
        """Return the code of HTTP and the answer; an `OSError` or `HTTPException` says that there was none."""
        content = None if body is None else json.dumps(body)
        headers = {} if body is None else {"content-type": "application/json"}
        self._http.request("GET" if body is None else "POST", path, content, headers)
        answer = self._http.getresponse()
        return answer.status, json.loads(answer.read())

    def close(self) -> None:
        """Let go of the connection."""
        self._http.close()


def ask(port: int, path: str, body: Any = None) -> Any:
    """Return the answer to one request, which must be a success."""
    line = Line(port)
    try:
        code, found = line.ask(path, body)
    finally:
        line.close()
    assert code < 300, (code, found)
    return found


def start(folder: Path, port: int, *, store: str = "d.db", within: Sequence[str] = ()) -> subprocess.Popen[bytes]:
    """Start a service with the models.toml of `folder`, and wait until it is ready; `within` is put before."""
    given = ["--store", store, "--config", "models.toml", "--port", str(port)]
    command = [*within, sys.executable, "-m", "belated._cli", "serve", *given]
    process = subprocess.Popen(command, cwd=folder, stderr=subprocess.DEVNULL)
    deadline = time.monotonic() + PATIENCE
    while True:
        try:
            ask(port, "/health/ready")
            return process
        except (OSError, http.client.HTTPException):
            assert process.poll() is None, "the service has stopped"
            assert time.monotonic() < deadline, "the service does not answer"
            time.sleep(0.02)
