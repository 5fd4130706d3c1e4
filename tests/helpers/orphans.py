"""A program whose workers play for minutes, to be killed while they do."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

PROGRAM = """
import os, sys, time
import belated

PIDS, BACKEND, ROWS = sys.argv[1:]

class Sleepy:
    def start(self, problem):
        inner = belated.RandomPolicy().start(problem)

        class Agent:
            def plan(self, rng):
                open(f"{PIDS}/{os.getpid()}", "w").close()
                time.sleep(1)
                return inner.plan(rng)

            def learn(self, batch):
                pass

        return Agent()

experiment = belated.Experiment(
    name="x",
    environments=belated.RiverSwim(),
    agents={"a": Sleepy()},
    delays=belated.Constant(0),
    episodes=1000,
    seeds=2,
)
belated.run_experiment(experiment, backend=BACKEND, jobs=2, folder=ROWS)
"""


def workers_after(how: signal.Signals, backend: str, folder: Path, count: int) -> tuple[list[int], list[int]]:
    """Kill the program once `count` workers play; return them, and those that live five seconds later."""
    pids, script = folder / "pids", folder / "script.py"
    pids.mkdir()
    script.write_text(PROGRAM, encoding="utf-8")
    parent = subprocess.Popen([sys.executable, str(script), str(pids), backend, str(folder / "rows")])
    try:
        deadline = time.monotonic() + 120
        while len(list(pids.iterdir())) < count and parent.poll() is None and time.monotonic() < deadline:
            time.sleep(0.05)
        workers = [int(path.name) for path in pids.iterdir()]
        assert all(alive(worker) for worker in workers)
    finally:
        parent.send_signal(how)
        parent.wait()
    deadline = time.monotonic() + 5
    while any(alive(worker) for worker in workers) and time.monotonic() < deadline:
        time.sleep(0.05)
    return workers, [worker for worker in workers if alive(worker)]


def alive(process: int) -> bool:
    """Tell whether a process runs; a dead one that nobody has asked about does not."""
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    state = Path(f"/proc/{process}/stat")
    return not state.is_file() or state.read_text().rpartition(")")[2].split()[0] != "Z"
