"""Clocks that jump by minutes, days and years: what cannot be right is refused, and no window ends at a wrong time."""

from __future__ import annotations

from itertools import count
from pathlib import Path
from typing import Any

import numpy as np

from attacks.tally import Tally
from belated.decisions import ClockError, ConflictError, MemoryStore, Model, ModelSettings, SQLiteStore, Store
from belated.decisions._ids import CheckedClock

MINUTE, DAY, YEAR = 60.0, 86_400.0, 365 * 86_400.0
WINDOW, SLACK = 3_600.0, 700.0
"""Seconds of a window, and by how much clocks that are off by minutes may move its end."""
TABLE = {"actions": ["a", "b"], "features": ["x"], "silence": {"kind": "mature", "seconds": WINDOW}, "noise": 1.0}
#: Of sessions: seconds without a step after which they end, and their windows begin.
IDLE = 600.0
TABLES = {
    "decisions": TABLE,
    "learned by age": {**TABLE, "silence": {"kind": "by_age", "seconds": WINDOW}},
    "sessions": {**TABLE, "horizon": 4, "idle": IDLE, "agent": "greedy", "noise": "auto"},
}


class World:
    """The true time, and clocks that are wrong."""

    def __init__(self) -> None:
        self.now, self.wrong = 2e9, [0.0, 0.0, 0.0]  # of two deciders and of the database

    def read(self, which: int) -> float:
        return self.now + self.wrong[which]

    def clock(self, store: Store, which: int) -> CheckedClock:
        read = store.time if store.shared else lambda: self.read(which)
        return CheckedClock(read, far=store.shared, own=lambda: self.read(which), passed=lambda: self.now)


class Shared(MemoryStore):
    """A store that two deciders share, with a clock of its own."""

    shared = True

    def __init__(self, world: World) -> None:
        super().__init__()
        self.world = world

    def time(self) -> float:
        return self.world.read(2)


def attack(tries: int, folder: Path, rng: np.random.Generator, tally: Tally) -> None:
    """Play `tries` histories with two deciders on one store, and with one that is stopped, set wrong and repaired."""
    for number in range(tries):
        if not tally.left():
            return
        kind = list(TABLES)[number % len(TABLES)]
        with tally.attempt(f"{number}: two deciders, {kind}"):
            _two(TABLES[kind], rng)
        with tally.attempt(f"{number}: a wrong clock at the start, and its repair, {kind}"):
            _wrong_at_start(folder / f"{number}.db", TABLES[kind], rng)


def _jump(rng: np.random.Generator) -> float:
    sizes = [MINUTE, 4 * MINUTE, 6 * MINUTE, DAY, 30 * DAY, YEAR, 10 * YEAR]
    return float(rng.choice([-1.0, 1.0]) * rng.choice(sizes))


def _one_jumps(rng: np.random.Generator) -> list[float]:
    which, by = int(rng.integers(3)), _jump(rng)
    return [by if each == which else 0.0 for each in range(3)]


def _two(table: dict[str, Any], rng: np.random.Generator) -> None:
    """One of the clocks jumps now and then; what is acknowledged must end when it should.

    One at a time: two that are wrong alike when a decider starts cannot be told from two that are right.
    """
    world = World()
    store = Shared(world)
    settings = ModelSettings.from_table(table)
    models = [Model("ads", settings, store, clock=world.clock(store, which)) for which in range(2)]
    made: dict[str, float] = {}
    for turn in range(60):
        world.now += float(rng.exponential(120.0))
        if rng.random() < 0.2:
            world.wrong = [0.0, 0.0, 0.0] if any(world.wrong) else _one_jumps(rng)
        which = int(rng.integers(2))
        if rng.random() < 0.1:  # a restart
            models[which] = Model("ads", None, store, clock=world.clock(store, which))
        try:
            session = {"session": f"visit {turn // 3}"} if settings.sessions is not None else {}
            made[models[which].decide({"x": float(rng.random())}, **session).id] = world.now
            models[which].tick()
        except (ClockError, ConflictError):  # or it has stood idle, and ended
            continue
    world.wrong = [0.0, 0.0, 0.0]
    world.now += 20.0
    model = Model("ads", None, store, clock=world.clock(store, 0))
    model.tick()
    _check(model, made, world)
    for _ in range(1 if settings.sessions is None else 2):  # sessions end, and then their windows
        world.now += WINDOW + SLACK
        model.tick()
    assert model.in_flight == 0, f"{model.in_flight} windows have not ended"
    assert model.verify() == []


def _check(model: Model, made: dict[str, float], world: World) -> None:
    for name, when in made.items():
        entry = model.lookup(name)
        assert abs(entry.made - when) <= SLACK, f"stamped {entry.made - when:.0f} s ahead"
        if model.settings.sessions is not None:
            continue
        assert entry.due is not None and (entry.learned is not None) == (entry.due <= model.state.over)
        assert abs(entry.due - when - WINDOW) <= SLACK
    assert model.state.latest <= world.now + SLACK


def _wrong_at_start(path: Path, table: dict[str, Any], rng: np.random.Generator) -> None:
    """A service that is started with a wrong clock cannot know; when the clock is right it says so, and is repaired."""
    world, jump, numbers = World(), abs(_jump(rng)), count()
    fading = {"forgetting": {"seconds": DAY}} if rng.random() < 0.5 and "horizon" not in table else {}
    settings = ModelSettings.from_table({**table, **fading})
    twin = Model("ads", settings, MemoryStore(), clock=lambda: world.now)

    def opened() -> Model:
        store = SQLiteStore(path, durable=False)
        return Model("ads", settings, store, clock=world.clock(store, 0))

    def step() -> dict[str, str]:
        """Return the name of a new session, if there are sessions."""
        return {"session": f"visit {next(numbers)}"} if settings.sessions is not None else {}

    def play(model: Model, rounds: int) -> None:
        for _ in range(rounds):
            world.now += float(rng.exponential(60.0))
            context, action = {"x": float(rng.random())}, "ab"[int(rng.integers(2))]
            session = step()
            for each in (model, twin):
                each.decide(context, chosen=action, **session)

    model = opened()
    play(model, 10)
    model.store.close()
    world.wrong[0] = jump
    model = opened()
    made = model.decide({"x": 0.5}, chosen="a", **step())
    model.tick()
    model.store.close()
    world.wrong[0] = 0.0
    model = opened()
    try:
        model.decide({"x": 0.5}, chosen="a", **step())
        assert jump <= 5 * MINUTE, "a log that is ahead was written to"
    except ClockError:
        assert jump > 4 * MINUTE, "a small step was refused"
        assert model.repair_clock() > 0
    else:
        model.store.close()
        return
    twin.decide({"x": 0.5}, chosen="a", **step())
    play(model, 10)
    for each in (model, twin):
        for _ in range(1 if settings.sessions is None else 2):
            world.now += WINDOW + SLACK
            while each.tick():
                pass
        assert each.in_flight == 0, "a window has not ended"
    assert model.lookup(made.id).learned == 0.0 and model.verify() == []
    if settings.sessions is not None:
        model.store.close()
        return
    for name, weights in twin.weights().items():
        np.testing.assert_allclose(model.weights()[name], weights, rtol=1e-6, atol=1e-12)
    model.store.close()
