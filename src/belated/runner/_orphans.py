"""Ending child processes together with the program that started them, however it ends.

This module imports only the standard library, so that a process can watch its parent while it still imports the rest.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

MARK = "BELATED_STARTED_BY"
"""The environment variable that marks a process which must not outlive the program that started it."""
PATIENCE = 3.0
"""Seconds during which processes that were just starting are still searched for."""
_PROCESSES = Path("/proc")
_CODE = f"""
import sys
parent, mark, *sys.path[:] = sys.argv[1:]
from {__name__} import watch
watch(int(parent), mark)
"""


def end_with(parent: int) -> None:
    """End this process soon after its `parent` has ended, for whatever reason."""

    def until_then() -> None:
        while os.getppid() == parent:  # an orphan gets another parent
            time.sleep(0.5)
        os._exit(1)

    threading.Thread(target=until_then, daemon=True).start()


@contextmanager
def marking(mark: str) -> Iterator[None]:
    """Mark all processes started in this block, and their descendants, with `mark`."""
    before = os.environ.get(MARK)
    os.environ[MARK] = mark
    try:
        yield
    finally:
        del os.environ[MARK]
        if before is not None:
            os.environ[MARK] = before


class Guard:
    """A process that outlives this one by seconds and ends its marked descendants; needs /proc.

    Processes started while `marking` end with this process, unless `end` was called.
    """

    def __init__(self) -> None:
        self.mark = uuid.uuid4().hex
        self._process: subprocess.Popen[bytes] | None = None
        if (_PROCESSES / "self" / "environ").exists():
            nothing = subprocess.DEVNULL
            self._process = subprocess.Popen(
                [sys.executable, "-c", _CODE, str(os.getpid()), self.mark, *sys.path],
                stdin=nothing,
                stdout=nothing,
                stderr=nothing,
                start_new_session=True,  # not interrupted by Ctrl-C
            )

    def end(self) -> None:
        if self._process is not None:
            self._process.kill()
            self._process.wait()


def watch(parent: int, mark: str) -> None:
    """Collect all processes with this mark while the parent lives; then end them.

    They are searched for repeatedly, since some processes overwrite their environment with a title.
    """
    known: dict[int, str] = {}
    while os.getppid() == parent:
        known.update(marked(mark))
        time.sleep(0.3)
    deadline = time.monotonic() + PATIENCE
    while time.monotonic() < deadline:
        known.update(marked(mark))
        for process in [process for process, began in known.items() if beginning(process) == began]:
            try:
                os.kill(process, signal.SIGKILL)
            except ProcessLookupError:
                continue
        time.sleep(0.1)


def marked(mark: str) -> dict[int, str]:
    """Return the processes whose environment has `mark`, with their start times."""
    wanted, found = f"{MARK}={mark}".encode(), {}
    for path in _PROCESSES.iterdir():
        if path.name.isdigit():
            try:
                ours = wanted in (path / "environ").read_bytes().split(b"\0")
            except OSError:  # it has ended, or belongs to another user
                continue
            if ours and (began := beginning(int(path.name))):
                found[int(path.name)] = began
    return found


def beginning(process: int) -> str | None:
    """Return the start time of a process, which distinguishes it from later ones with the same id; None if it ended."""
    try:
        told = (_PROCESSES / str(process) / "stat").read_text().rpartition(")")[2].split()
    except OSError:
        return None
    return None if told[0] == "Z" else told[19]
