"""The decision service: durable decisions over HTTP, decisions in process, restarts."""

from __future__ import annotations

import http.client
import json
import os
import resource
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from threadpoolctl import threadpool_limits

from belated.decisions import DecisionLearner, Model, ModelSettings, Reward, SQLiteStore, Unknown
from benchmarks.fresh import megabytes
from benchmarks.measure import Measure, at_least, at_most, below
from benchmarks.problems import Effort

CONNECTIONS, DIMENSION, ACTIONS = 64, 10, 10
READERS, WIDE = 10, 200
"""Who read the weights while somebody decides, and how many there are of an action."""
NAMES = [f"x{i}" for i in range(DIMENSION - 1)]  # and the constant


def table() -> dict[str, Any]:
    """Return the settings of the model that is asked: d = 10, 10 actions."""
    return {"actions": [f"a{i}" for i in range(ACTIONS)], "features": NAMES, "silence": {"kind": "unknown"}}


def service(effort: Effort) -> list[Measure]:
    """Measure the service over HTTP and in process."""
    requests = 20_000 if effort.patient else 3_000
    return [
        *over_http(requests, effort.repeats),
        *beside_readers(requests // 10, effort.repeats),
        *in_process(effort),
        *restart(1_000_000 if effort.patient else 20_000),
    ]


def toml(value: Any) -> str:
    """Return a value as TOML on one line.

    >>> toml({"kind": "unknown", "range": [0.0, 1]})
    '{"kind" = "unknown", "range" = [0.0, 1]}'
    """
    if isinstance(value, Mapping):
        return "{" + ", ".join(f"{json.dumps(name)} = {toml(each)}" for name, each in value.items()) + "}"
    return "[" + ", ".join(map(toml, value)) + "]" if isinstance(value, list | tuple) else json.dumps(value)


class Running:
    """`belated serve` in a process of its own, on a loopback address."""

    def __init__(
        self,
        folder: Path,
        environment: Mapping[str, str] | None = None,
        models: Mapping[str, Mapping[str, Any]] | None = None,
    ) -> None:
        (folder / "models.toml").write_text(f"models = {toml(models or {'ads': table()})}\n")
        with socket.socket() as found:
            found.bind(("127.0.0.1", 0))
            self.port = int(found.getsockname()[1])
        given = ["--store", str(folder / "d.db"), "--config", str(folder / "models.toml"), "--port", str(self.port)]
        began = time.perf_counter()
        self._process = subprocess.Popen(
            [sys.executable, "-m", "belated._cli", "serve", *given],
            stderr=subprocess.DEVNULL,
            env={**os.environ, **(environment or {})},
        )
        while not self._ready():
            time.sleep(0.01)
        self.start = time.perf_counter() - began

    @property
    def cpu(self) -> float:
        """Its time on the processor so far."""
        used = Path(f"/proc/{self._process.pid}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()
        return (int(used[11]) + int(used[12])) / os.sysconf("SC_CLK_TCK")

    def _ready(self) -> bool:
        line = http.client.HTTPConnection("127.0.0.1", self.port, timeout=5)
        try:
            line.request("GET", "/health/ready")
            return line.getresponse().status == 200
        except OSError:
            return False
        finally:
            line.close()

    def stop(self) -> float:
        """Stop it, and return its time on the processor."""
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        self._process.send_signal(signal.SIGTERM)
        self._process.wait(60)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


class Rate(NamedTuple):
    """How many requests a second were answered; of sessions, how many steps."""

    rate: float
    median: float
    """Milliseconds."""
    late: float
    """The 99th percentile."""
    own: float
    """The caller's own CPU for a request, in µs."""


def load(port: int, requests: int, kind: int = 0, numbers: int = len(NAMES), connections: int = CONNECTIONS) -> Rate:
    """Send requests over some connections from one process; see `sender` for their kinds."""
    given = [str(each) for each in (port, requests, connections, kind, numbers)]
    command = [sys.executable, "-m", "benchmarks.sender", *given]
    sent = subprocess.run(command, stdout=subprocess.PIPE, text=True, timeout=300, check=True)
    seconds, took, cpu = json.loads(sent.stdout)
    median, late = (1000.0 * float(each) for each in np.quantile(took, [0.5, 0.99]))
    return Rate(len(took) / seconds, median, late, 1e6 * cpu / requests)


def over_http(requests: int, repeats: int) -> list[Measure]:
    """Measure durable decisions, decisions with rewards, and the start, over HTTP."""
    empty, starts, cpus, plain, mixed, costs = [], [], [], [], [], []
    for _ in range(repeats):
        with tempfile.TemporaryDirectory(dir=Path.cwd()) as folder:  # on a disk, not in memory
            running = Running(Path(folder), {"BELATED_CACHE": f"{folder}/cache", "NUMBA_CACHE_DIR": f"{folder}/numba"})
            empty.append(running.start)
            running.stop()
            running = Running(Path(folder))
            starts.append(running.start)
            cpus.append(running.stop())
            running = Running(Path(folder))
            plain.append(load(running.port, requests))
            mixed.append(load(running.port, requests, kind=1))
            costs.append(1e6 * (running.stop() - cpus[-1]) / (2 * requests))
    note = f"d = {DIMENSION}, {ACTIONS} actions, {CONNECTIONS} connections, SQLite, every answer after its commit"
    rates = [("decide over HTTP", plain), ("decide and feedback over HTTP", mixed)]
    found = []
    for name, measured in rates:
        found.append(Measure(name, tuple(each.rate for each in measured), "/s", at_least(4_000), note))
        found.append(Measure(f"{name}, p99", tuple(each.late for each in measured), "ms", below(60), note))
    callers = tuple(each.own for each in (*plain, *mixed))
    found.append(Measure("CPU of the service for a request", tuple(costs), "µs", note=note, less_is_better=True))
    found.append(Measure("CPU of the caller for a request", callers, "µs", note=note, less_is_better=True))
    found.append(Measure("start of belated serve, no kernels", tuple(empty), "s", at_most(15), "empty kernel cache"))
    found.append(Measure("start of belated serve until it is ready", tuple(starts), "s", at_most(2), "warm"))
    found.append(Measure("start and stop of belated serve, CPU", tuple(cpus), "s", note="warm", less_is_better=True))
    return found


def beside_readers(requests: int, repeats: int) -> list[Measure]:
    """Measure one caller's decisions, alone and beside ten who read the weights of the model over and over."""
    names = [f"x{i}" for i in range(WIDE - 1)]
    alone, beside = [], []
    with tempfile.TemporaryDirectory(dir=Path.cwd()) as folder:
        running = Running(Path(folder), models={"ads": {**table(), "features": names}})
        load(running.port, requests, 1, len(names))  # something to read
        for _ in range(repeats):
            alone.append(load(running.port, requests, 1, len(names), 1).median)
            asked = [sys.executable, "-m", "benchmarks.readers", str(running.port), str(READERS)]
            with subprocess.Popen(asked, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as readers:
                assert readers.stdout is not None
                readers.stdout.readline()
                beside.append(load(running.port, requests, 1, len(names), 1).median)
                told, _ = readers.communicate()
        running.stop()
    note = (
        f"d = {WIDE}, {ACTIONS} actions, decisions and rewards in turn; the readers got {told.decode().strip()} answers"
    )
    return [
        Measure("a caller alone, p50", tuple(alone), "ms", note=note, less_is_better=True),
        Measure(f"a caller beside {READERS} readers of the weights, p50", tuple(beside), "ms", below(100), note),
    ]


def per_round(step: Callable[[], object], rounds: int) -> float:
    """Return the microseconds of CPU of this thread for one round, after some that do not count."""
    with threadpool_limits(1):
        for _ in range(rounds // 10):
            step()
        began = time.thread_time()
        for _ in range(rounds):
            step()
        return 1e6 * (time.thread_time() - began) / rounds


def rounds(draws: int, floor: float, count: int = 2_000) -> float:
    """Return the microseconds of CPU for decide + feedback of a learner at d = 100 and 10 actions."""
    contexts = np.random.default_rng(0).standard_normal((64, 10, 100))
    learner = DecisionLearner(dimension=100, silence=Unknown(), draws=draws, floor=floor)
    turn = iter(range(10**9))

    def step() -> None:
        made = learner.decide(contexts[next(turn) % 64])
        learner.feedback(made.id, 1.0)

    return per_round(step, count)


def in_process(effort: Effort) -> list[Measure]:
    """Measure decide + feedback in process, with and without true probabilities.

    The group `bayesianbandits` has the same round of that package beside ours.
    """
    count = 2_000 if effort.patient else 300
    true = tuple(rounds(32, 0.01, count) for _ in range(effort.repeats))
    fast = tuple(rounds(1, 0.0, count) for _ in range(effort.repeats))
    note = "decide + feedback, d = 100, 10 actions, in memory"
    return [
        Measure("with true probabilities (32 draws)", true, "µs CPU", note=note, less_is_better=True),
        Measure("with one draw and no probability", fast, "µs CPU", note=note, less_is_better=True),
    ]


def restart(decisions: int) -> list[Measure]:
    """Measure how long a model takes to be there again, from its snapshot and from the whole log, and its memory.

    The store is left as after a crash: without a last snapshot.
    """
    with tempfile.TemporaryDirectory(dir=Path.cwd()) as folder:
        path = Path(folder) / "d.db"
        store = SQLiteStore(path, durable=False)
        model = Model("ads", ModelSettings.from_table(table()), store)
        context = {name: 0.1 * i for i, name in enumerate(NAMES)}
        sizes = []
        for turn in range(decisions // 1_000):
            made = model.decide_many([context] * 1_000)
            model.feedback_many([Reward(one.id, 1.0) for one in made])
            if turn >= 15:  # what is kept at hand is full by then
                sizes.append(megabytes("VmRSS"))
        store.close()
        began = time.perf_counter()
        store = SQLiteStore(path)
        model = Model("ads", None, store)
        ready = time.perf_counter() - began
        began = time.perf_counter()
        assert model.verify() == []
        whole = time.perf_counter() - began
        store.close()
    note = f"{decisions} decisions, each with its reward"
    grown = (max(sizes) - sizes[0],)
    return [
        Measure("restart", (ready,), "s", at_most(10), note),
        Measure("compute the state again from the whole log", (whole,), "s", note=note, less_is_better=True),
        Measure("memory by which the model grew after the first 16 000 of them", grown, "MB", below(10), note),
    ]
