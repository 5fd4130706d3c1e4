"""A PostgreSQL server of one's own, and `belated serve` as a process."""

from __future__ import annotations

import glob
import http.client
import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from attacks.tally import NotBuiltError


def _tool(name: str) -> str:
    places = sorted(glob.glob(f"/usr/lib/postgresql/*/bin/{name}"), reverse=True)  # noqa: PTH207
    found = places[0] if places else shutil.which(name)
    if found is None:
        raise NotBuiltError(f"needs {name} of a PostgreSQL server")
    return found


@contextmanager
def postgres() -> Iterator[str]:
    """Start a server, and give its address; it is stopped in the end."""
    initdb, control = _tool("initdb"), _tool("pg_ctl")
    folder = Path(tempfile.mkdtemp(prefix="belated-postgres-"))
    user: list[str] = []
    if os.geteuid() == 0:  # the server refuses to run as root
        runuser = shutil.which("runuser")
        if runuser is None or subprocess.run(["id", "-u", "postgres"], capture_output=True).returncode:
            raise NotBuiltError("needs a user other than root, such as postgres, to run a PostgreSQL server")
        user = [runuser, "-u", "postgres", "--"]
        shutil.chown(folder, "postgres")
        folder.chmod(0o755)
    data = str(folder / "data")

    def run(*command: str) -> None:
        subprocess.run([*user, *command], check=True, capture_output=True, cwd="/")

    run(initdb, "-D", data, "-A", "trust", "-U", "postgres", "-N")
    options = f"-c listen_addresses='' -c unix_socket_directories={folder} -c fsync=off"
    run(control, "-D", data, "-l", str(folder / "log"), "-w", "-o", options, "start")
    try:
        yield f"postgresql://postgres@/postgres?host={folder}"
    finally:
        run(control, "-D", data, "-m", "immediate", "stop")
        shutil.rmtree(folder, ignore_errors=True)


def backends(address: str) -> list[int]:
    """Return the processes of the server that work for others."""
    import psycopg

    with psycopg.connect(address) as connection:
        rows = connection.execute(
            "SELECT pid FROM pg_stat_activity WHERE backend_type = 'client backend' AND pid <> pg_backend_pid()"
        )
        return [int(row[0]) for row in rows.fetchall()]


class Service:
    """`belated serve` with a store and the models of a file, on a free port of this machine."""

    def __init__(self, folder: Path, store: str, models: str) -> None:
        (folder / "models.toml").write_text(models)
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.port = int(free.getsockname()[1])
        given = ["--store", store, "--config", str(folder / "models.toml"), "--port", str(self.port)]
        command: Sequence[str] = [sys.executable, "-m", "belated._cli", "serve", *given]
        self.process = subprocess.Popen(command, stderr=subprocess.DEVNULL)
        deadline = time.monotonic() + 60
        while True:
            try:
                if self.ask("/health/ready")[0] == 200:
                    return
            except OSError:
                pass
            assert self.process.poll() is None and time.monotonic() < deadline, "the service does not start"
            time.sleep(0.05)

    def ask(self, path: str, body: Any = None, *, patience: float = 60.0) -> tuple[int, Any]:
        """Return the code and the answer."""
        line = http.client.HTTPConnection("127.0.0.1", self.port, timeout=patience)
        try:
            content = None if body is None else json.dumps(body)
            headers = {} if body is None else {"content-type": "application/json"}
            line.request("GET" if body is None else "POST", path, content, headers)
            answer = line.getresponse()
            return answer.status, json.loads(answer.read())
        finally:
            line.close()

    def stop(self, number: int, within: float) -> int:
        """Send a signal, and return the exit code; it must end in time."""
        self.process.send_signal(number)
        return self.process.wait(within)

    def kill(self) -> None:
        """End it if it still runs."""
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGKILL)
            self.process.wait()
