"""Kills `belated run` at random moments, with every backend: it resumes to the same bytes, and no process survives."""

from __future__ import annotations

import importlib.util
import os
import shutil
import signal
import subprocess
import sys
import time
import uuid
from pathlib import Path
from typing import NamedTuple

import numpy as np

from attacks.tally import NotBuiltError, Tally

SPEC = """
name = "killed"
episodes = 6000
seeds = 6
[environments.river]
environment = "riverswim"
states = 3
[agents.random]
algorithm = "random"
[agents.greedy]
algorithm = "epsilon-greedy"
[delays.late]
distribution = "poisson"
mean = 20
"""
MARK = "BELATED_ATTACK"
KILLS, SECONDS = 3, 5.0
"""Kills per experiment before it may finish; seconds after which no process may be alive."""


class Started(NamedTuple):
    """A process that an experiment has started."""

    number: int
    began: str
    command: str


def attack(tries: int, folder: Path, rng: np.random.Generator, tally: Tally) -> None:
    """Kill the experiment repeatedly, let it finish, and compare its rows with an undisturbed run."""
    if not Path("/proc/self/environ").exists():
        raise NotBuiltError("needs Linux, to find every process it has started")
    spec = folder / "killed.toml"
    spec.write_text(SPEC, encoding="utf-8")
    _start(spec, folder / "whole", "threads").wait()  # compiles
    began = time.monotonic()
    _start(spec, folder / "again", "threads").wait()
    whole = {"threads": time.monotonic() - began}
    rows = contents(folder / "whole")
    assert rows, "the experiment has no rows"
    made = 0
    for turn in range(tries):
        backend = backend_of(turn)
        if made >= tries or not tally.left():
            break
        if backend not in whole:
            began = time.monotonic()
            _start(spec, folder / backend, backend).wait()
            whole[backend] = time.monotonic() - began
        out = folder / f"turn-{turn}"
        for _ in range(min(KILLS, tries - made)):
            how = signal.SIGKILL if rng.random() < 0.7 else signal.SIGTERM
            moment = whole[backend] * rng.uniform(0.3, 1.0)
            with tally.attempt(f"{backend}: {how.name} after {moment:.2f} s"):
                kill(spec, out, backend, how, moment)
            made += 1
        with tally.attempt(f"{backend}: the same rows after it was killed"):
            assert _start(spec, out, backend).wait() == 0, "it did not resume"
            assert contents(out) == rows, "other rows"
        shutil.rmtree(out, ignore_errors=True)


def backend_of(turn: int) -> str:
    """Return the backend of a turn: Ray, which takes long to start, every fifth time and where it is installed."""
    if turn % 5 == 2 and importlib.util.find_spec("ray") is not None:
        return "ray"
    return ("threads", "processes")[turn % 2]


def kill(spec: Path, out: Path, backend: str, how: signal.Signals, moment: float) -> None:
    """Kill the experiment after `moment` seconds; no process that it has started may survive."""
    mark = uuid.uuid4().hex
    process = _start(spec, out, backend, mark)
    started: set[Started] = set()
    deadline = time.monotonic() + moment
    while process.poll() is None and time.monotonic() < deadline:
        started |= marked(mark)  # now and then, since some overwrite their environment with a title
        time.sleep(0.1)
    process.send_signal(how)
    process.wait()
    deadline = time.monotonic() + SECONDS
    while (alive := still(started | marked(mark))) and time.monotonic() < deadline:
        time.sleep(0.05)
    for orphan in alive:
        os.kill(orphan.number, signal.SIGKILL)
    assert not alive, f"alive {SECONDS:.0f} s later: {', '.join(orphan.command for orphan in alive)}"


def contents(folder: Path) -> dict[str, bytes]:
    """Return all rows in a folder, by their path."""
    return {str(path.relative_to(folder)): path.read_bytes() for path in sorted(folder.rglob("*.parquet"))}


def marked(mark: str) -> set[Started]:
    """Return the processes whose environment has `mark`."""
    found = set()
    for path in Path("/proc").iterdir():
        if not path.name.isdigit():
            continue
        try:
            environment, command = (path / "environ").read_bytes(), (path / "cmdline").read_bytes()
        except OSError:  # it has ended, or is not ours
            continue
        if f"{MARK}={mark}".encode() in environment.split(b"\0"):
            shown = command.replace(b"\0", b" ").decode(errors="replace")[:80]
            found.add(Started(int(path.name), _beginning(path), shown))
    return found


def still(started: set[Started]) -> list[Started]:
    """Return the processes that are still alive; a process id may have been reused."""
    return [one for one in started if one.began and _beginning(Path(f"/proc/{one.number}")) == one.began]


def _beginning(path: Path) -> str:
    """Return when the process began; nothing if it has ended."""
    try:
        told = (path / "stat").read_text().rpartition(")")[2].split()
    except OSError:
        return ""
    return "" if told[0] == "Z" else told[19]


def _start(spec: Path, out: Path, backend: str, mark: str = "none") -> subprocess.Popen[bytes]:
    command = [sys.executable, "-m", "belated._cli", "run", spec, "--out", out, "--backend", backend, "--jobs", "2"]
    environment = {**os.environ, MARK: mark}
    quiet = subprocess.DEVNULL
    return subprocess.Popen([*map(str, command), "--quiet"], env=environment, stdout=quiet, stderr=quiet)
