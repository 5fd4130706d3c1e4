"""What a program has started ends with it: also what others have started for it, and what has only begun to start."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest
from orphans import alive

from belated.runner import _backends as processes
from belated.runner._orphans import MARK, Guard, beginning, marked, marking

PROGRAM = """
import os, subprocess, sys, time
from belated.runner._orphans import Guard, marking

guard = Guard()
nap = "import time; time.sleep(60)"
forgetful = f"import os, sys, time; time.sleep(1); os.execve(sys.executable, ['x', '-c', {nap!r}], {{}})"
with marking(guard.mark):
    started = subprocess.Popen([sys.executable, "-c", forgetful], start_new_session=True, stdout=subprocess.DEVNULL)
free = subprocess.Popen([sys.executable, "-c", nap], stdout=subprocess.DEVNULL)
time.sleep(2)
print(started.pid, free.pid, flush=True)
if sys.argv[1:] == ["end"]:
    guard.end()
os.kill(os.getpid(), 9)
"""

needs_proc = pytest.mark.skipif(not Path("/proc/self/environ").exists(), reason="needs /proc")


@needs_proc
@pytest.mark.parametrize("ended", [False, True], ids=["guarded", "let go"])
def test_what_was_started_under_guard_ends_with_the_program_and_nothing_else_does(ended: bool) -> None:
    program = subprocess.run([sys.executable, "-c", PROGRAM, *["end"][: int(ended)]], stdout=subprocess.PIPE, text=True)
    started, free = map(int, program.stdout.split())
    try:
        deadline = time.monotonic() + (1 if ended else 20)
        while alive(started) and time.monotonic() < deadline:
            time.sleep(0.05)
        assert alive(started) == ended
        assert alive(free)
    finally:
        for process in (started, free):
            if alive(process):
                os.kill(process, 9)


@needs_proc
def test_a_mark_is_of_what_is_started_within() -> None:
    nap = [sys.executable, "-c", "import time; time.sleep(60)"]
    with marking("outer"):
        with marking("inner"):
            inner = subprocess.Popen(nap)
        assert os.environ[MARK] == "outer"
    assert MARK not in os.environ
    try:
        deadline = time.monotonic() + 20
        while not marked("inner") and time.monotonic() < deadline:
            time.sleep(0.01)
        assert marked("inner") == {inner.pid: beginning(inner.pid)}
    finally:
        inner.kill()
        inner.wait()
    assert beginning(inner.pid) is None


def test_without_proc_there_is_no_guard(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr("belated.runner._orphans._PROCESSES", tmp_path)
    monkeypatch.setattr(subprocess, "Popen", None)
    Guard().end()


@pytest.mark.skipif(sys.platform == "win32", reason="a process keeps its parent's number there")
def test_a_worker_whose_parent_has_died_before_it_began_ends() -> None:
    """It neither waits for its standard input to end, nor for its own imports."""
    nobody = os.getpid() + 10**7
    worker = subprocess.Popen([sys.executable, "-c", processes._CODE, str(nobody), *sys.path], stdin=subprocess.PIPE)
    try:
        assert worker.wait(60) == 1
    finally:
        worker.kill()
        assert worker.stdin is not None
        worker.stdin.close()
