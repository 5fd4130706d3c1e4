"""How fast sessions are served: steps over HTTP while plans are made, what a set of plans costs, and a restart."""

from __future__ import annotations

import tempfile
import time
from pathlib import Path
from typing import Any

from belated._kernels.streams import stream
from belated.client import Client
from belated.decisions import Decide, MemoryStore, Model, ModelSettings, Reward, SQLiteStore, Store
from belated.decisions._plans import encode_state
from belated.decisions._sessions import members_of
from belated.errors import BelatedError
from benchmarks.measure import Measure, at_least, at_most, below
from benchmarks.problems import Effort
from benchmarks.service import CONNECTIONS, Running, load

FEATURES, ACTIONS, HORIZON = 20, 5, 8
SHAPE = f"{FEATURES} features, {ACTIONS} actions, H = {HORIZON}"
#: Sessions that are begun together when a log is made.
TOGETHER = 250


def table() -> dict[str, Any]:
    """Return the settings of the model that is asked."""
    return {
        "actions": [f"a{i}" for i in range(ACTIONS)],
        "features": [f"x{i}" for i in range(FEATURES)],
        "horizon": HORIZON,
        "silence": {"kind": "unknown"},
    }


def session_speed(effort: Effort) -> list[Measure]:
    """Measure sessions over HTTP, their plans, and their restart."""
    return [
        *steps(40_000 if effort.patient else 3_000, effort.repeats),
        *plans(10_000 if effort.patient else 500),
        *restart(100_000 if effort.patient else 1_000),
    ]


def steps(count: int, repeats: int) -> list[Measure]:
    """Measure durable steps over HTTP, with a reward for each session, while plans are made."""
    found, costs = [], []
    for _ in range(repeats):
        with tempfile.TemporaryDirectory(dir=Path.cwd()) as folder:  # on a disk, not in memory
            running = Running(Path(folder), models={"ads": table()})
            with Client(f"http://127.0.0.1:{running.port}", timeout=60.0) as client:
                load(running.port, CONNECTIONS * (HORIZON + 1), HORIZON, FEATURES)  # what is compiled at first
                planned, used = _planned(client, 1), running.cpu
                found.append(load(running.port, count * (HORIZON + 1) // HORIZON, HORIZON, FEATURES))
                costs.append(1e6 * (running.cpu - used) / count)
                _planned(client, planned + 1)  # it was planned meanwhile
            running.stop()
    note = f"{SHAPE}, {CONNECTIONS} connections, SQLite, each answer after its commit, while plans are made"
    rates, median, late, own = zip(*found, strict=True)
    return [
        Measure("steps of sessions over HTTP", rates, "/s", at_least(3_000), note),
        Measure("steps of sessions over HTTP, p50", median, "ms", note=note, less_is_better=True),
        Measure("steps of sessions over HTTP, p99", late, "ms", below(60), note),
        Measure("CPU of the service for a step, plans included", tuple(costs), "µs", note=note, less_is_better=True),
        Measure("CPU of the caller for a request", own, "µs", note=note, less_is_better=True),
    ]


def _planned(client: Client, least: int) -> int:
    """Return how many places of the log the latest plans were made from, once they are at least so many."""
    while (place := client.model("ads")["sessions"]["plan"] or 0) < least:
        time.sleep(0.1)
    return int(place)


def visit(model: Model, sessions: int) -> None:
    """Let so many sessions of all their steps take place."""
    rng = stream(0, "bench")
    for first in range(0, sessions, TOGETHER):
        names = [str(number) for number in range(first, min(first + TOGETHER, sessions))]
        for _ in range(HORIZON):
            numbers = rng.standard_normal((len(names), FEATURES)).round(3).tolist()
            contexts = [dict(zip(model.settings.encoding.features, row, strict=True)) for row in numbers]
            _done(model, [Decide(each, session=name) for each, name in zip(contexts, names, strict=True)])
        paid = (rng.random(len(names)) < 0.3).tolist()
        _done(model, [Reward("", float(each), session=name) for each, name in zip(paid, names, strict=True)])


def _done(model: Model, operations: list[Any]) -> None:
    for answer in model.run(operations):
        if isinstance(answer, BelatedError):
            raise answer


def plans(sessions: int) -> list[Measure]:
    """Measure the time on the processor of a set of plans after so many sessions."""
    model = Model("ads", ModelSettings.from_table(table()), MemoryStore())
    visit(model, TOGETHER)
    model.plan()  # compiles
    model = Model("ads", ModelSettings.from_table(table()), MemoryStore())
    visit(model, sessions)
    began = time.process_time()
    model.plan()
    whole = time.process_time() - began
    model.decide(dict.fromkeys(model.settings.encoding.features, 0.0), session="another")
    model.end("another", terminal=True)
    began = time.process_time()
    model.plan()
    again = time.process_time() - began
    state = encode_state(model.settings, dict.fromkeys(model.settings.encoding.features, 0.5), model.settings.names)
    members = members_of(model.state, model.plan())
    assert members is not None
    began = time.perf_counter()
    for step in range(1_000):
        members.distributions(step % HORIZON, state)
    asked = 1e3 * (time.perf_counter() - began)
    note = f"{SHAPE}, after {sessions} sessions of {HORIZON} steps"
    return [
        Measure("all members asked for their probabilities", (asked,), "µs", at_most(30), note),
        Measure("CPU of a set of plans", (again,), "s", at_most(5), note),
        Measure("CPU of a first set, which reads all of the log", (whole,), "s", note=note, less_is_better=True),
    ]


def restart(sessions: int) -> list[Measure]:
    """Measure how long a model of sessions takes to be there again after a crash, and until it has planned again."""
    with tempfile.TemporaryDirectory(dir=Path.cwd()) as folder:
        path = Path(folder) / "d.db"
        store: Store = SQLiteStore(path, durable=False)
        model = Model("ads", ModelSettings.from_table(table()), store)
        visit(model, sessions)
        model.plan()
        for name in range(1_000):  # open ones, which go on
            context = dict.fromkeys(model.settings.encoding.features, 0.1)
            model.decide(context, session=f"open {name}")
        store.close()
        began = time.perf_counter()
        store = SQLiteStore(path)
        model = Model("ads", None, store)
        model.decide(dict.fromkeys(model.settings.encoding.features, 0.1), session="open 7")
        ready = time.perf_counter() - began
        began = time.process_time()
        model.plan()
        read = time.process_time() - began
        model.keep_learned()
        store.close()
        store = SQLiteStore(path)
        model = Model("ads", None, store)
        model.end("open 7", terminal=True)
        began = time.process_time()
        model.plan()
        kept = time.process_time() - began
        store.close()
    note = f"{sessions} sessions of {HORIZON} steps, each with a reward, and 1 000 open ones; {SHAPE}"
    return [
        Measure("restart until an open session has its next step", (ready,), "s", at_most(10), note),
        Measure("CPU of the first set of plans after a crash", (read,), "s", note=f"the log is read; {note}"),
        Measure("CPU of the first set of plans after an orderly stop", (kept,), "s", at_most(10), note),
    ]
