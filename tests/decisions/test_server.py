"""The server that the tests start does not outlive them."""

from __future__ import annotations

import signal
import subprocess
import sys
import time
from pathlib import Path

SCRIPT = """
import sys
sys.path.insert(0, sys.argv[1])
import postgres_server
server = postgres_server.postgres
made = getattr(server, "__wrapped__", None) or server.__pytest_wrapped__.obj
server = made()
print(next(server), flush=True)
sys.stdin.read()
"""


def test_a_killed_test_leaves_no_server_behind(postgres: str) -> None:
    helpers = str(Path(__file__).parents[1] / "helpers")
    command = [sys.executable, "-c", SCRIPT, helpers]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as killed:
        assert killed.stdout is not None
        folder = Path(killed.stdout.readline().strip().partition("host=")[2])
        killed.send_signal(signal.SIGKILL)
    for _ in range(600):
        if not folder.exists():
            break
        time.sleep(0.05)
    assert not folder.exists()  # removed after the server has stopped
