"""`belated serve` as a process of its own, for attacks over HTTP; on this machine only."""

from __future__ import annotations

import contextlib
import http.client
import json
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

MODELS = '[models.ads]\nactions = ["a", "b"]\nfeatures = ["x"]\nsilence = {kind = "unknown"}\n'
DECIDE, CONTEXT = "/v1/models/ads/decide", b'{"context": {"x": 1.0}}'
PATIENCE = 60.0


class Reply(NamedTuple):
    """The code and the body of an answer."""

    code: int
    body: bytes


def free_port() -> int:
    """Return a port on which nobody listens now."""
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return int(found.getsockname()[1])


class Server:
    """A service with one model, whose keys, if any, are in keys.toml of its folder."""

    def __init__(self, folder: Path, *options: str, store: str = "d.db") -> None:
        self.folder = folder
        folder.mkdir(exist_ok=True)
        (folder / "models.toml").write_text(MODELS, encoding="utf-8")
        self.port = free_port()
        given = ["--store", store, "--config", "models.toml", "--port", str(self.port), *options]
        self._log = (folder / "log").open("wb")
        self.process = subprocess.Popen(
            [sys.executable, "-m", "belated._cli", "serve", *given], cwd=folder, stderr=self._log, umask=0
        )
        deadline = time.monotonic() + PATIENCE
        while True:
            with contextlib.suppress(OSError, http.client.HTTPException):
                if self.ask("GET", "/health/ready").code == 200:
                    return
            if self.process.poll() is not None or time.monotonic() > deadline:
                self.close()
                raise RuntimeError(f"the service does not answer: {self.log()[-300:]}")
            time.sleep(0.05)

    def ask(self, method: str, path: str, body: bytes | None = None, headers: Mapping[str, str] | None = None) -> Reply:
        """Return the answer to a request with exactly these headers; Host is that of the service if not given."""
        line = http.client.HTTPConnection("127.0.0.1", self.port, timeout=PATIENCE)
        try:
            named = {
                "host": f"127.0.0.1:{self.port}",
                **{name.lower(): value for name, value in (headers or {}).items()},
            }
            line.putrequest(method, path, skip_host=True, skip_accept_encoding=True)
            for name, value in named.items():
                line.putheader(name, value)
            if body is not None:
                line.putheader("content-length", str(len(body)))
            line.endheaders(body)
            answer = line.getresponse()
            return Reply(answer.status, answer.read())
        finally:
            line.close()

    def decisions(self, **headers: str) -> int:
        """Return how many decisions were made."""
        found: dict[str, Any] = json.loads(self.ask("GET", "/v1/models/ads", headers=headers).body)
        return int(found["decisions"])

    def log(self) -> str:
        """Return what it has said."""
        return (self.folder / "log").read_text(encoding="utf-8", errors="replace")

    def stop(self, told: int = signal.SIGTERM) -> int:
        """Send a signal, and return the exit code."""
        self.process.send_signal(told)
        return self.process.wait(PATIENCE)

    def close(self) -> None:
        """End it, whatever it does."""
        if self.process.poll() is None:
            self.process.kill()
            self.process.wait()
        self._log.close()


@contextlib.contextmanager
def served(folder: Path, *options: str, store: str = "d.db") -> Iterator[Server]:
    """Start a service, and end it with the block."""
    made = Server(folder, *options, store=store)
    try:
        yield made
    finally:
        made.close()


def memory_of(process: int) -> int:
    """Return the bytes of memory that a process has used at most."""
    for line in Path(f"/proc/{process}/status").read_text(encoding="utf-8").splitlines():
        if line.startswith("VmHWM:"):
            return int(line.split()[1]) << 10
    raise LookupError(f"there is no process {process}")


def is_linux() -> bool:
    return Path("/proc/self/status").exists()
