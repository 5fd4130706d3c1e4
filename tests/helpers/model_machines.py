"""What the state machines of models share: a store that can crash, a clock, and what becomes of a reward."""

from __future__ import annotations

import shutil
import tempfile
from itertools import pairwise
from pathlib import Path
from typing import Any

from hypothesis import HealthCheck, settings
from hypothesis.stateful import RuleBasedStateMachine, rule, run_state_machine_as_test

from belated.decisions import MemoryStore, Model, ModelSettings, SQLiteStore, Status, Unknown
from belated.decisions._store.postgres import PostgresStore

WINDOW = 5.0
AGGREGATES: dict[str, Any] = {
    "first": lambda values: values[0],
    "last": lambda values: values[-1],
    "sum": sum,
    "mean": lambda values: sum(values) / len(values),
    "max": max,
    "min": min,
}
CHECKS = settings(deadline=None, stateful_step_count=30, suppress_health_check=list(HealthCheck))


class ModelMachine(RuleBasedStateMachine):
    """A model, and `self.plain`: a dictionary of what a careful clerk would have written beside it."""

    def begin(self, table: dict[str, Any], silence: Any) -> None:
        self.folder = Path(tempfile.mkdtemp())
        self.now, self.over = 1000.0, 0.0
        self.silence, self.aggregate = silence, table["aggregate"]
        self.settings = ModelSettings.from_table({**table, "silence": {"kind": "unknown"}})
        object.__setattr__(self.settings, "silence", silence)
        self.plain: dict[str, dict[str, Any]] = {}

    def open(self) -> None:
        self.store = self.open_store()
        self.model = self.open_model()
        self.counts = dict.fromkeys(Status, 0)

    def open_store(self) -> Any:
        raise NotImplementedError

    def reopen(self) -> Any:
        return self.store

    def open_model(self) -> Model:
        return Model("m", self.settings, self.store, clock=lambda: self.now)

    def touch(self) -> None:
        """Any call that is stored ends the windows that are due."""
        self.over = max(self.over, self.now)

    def expect(self, status: Status, got: Any) -> None:
        self.counts[status] += 1
        assert got.status is status, (got, status)
        self.touch()

    def judged(
        self, each: dict[str, Any], gone: bool, due: float | None, reward: float, event: str, version: int, again: bool
    ) -> Status:
        """What becomes of a reward under a name that has had `events` and `late` ones; `again` is a correction."""
        known = {**each["events"].get(event, {}), **each["late"].get(event, {})}
        last = max(known, default=-1)
        if again:
            if known and known[last][1] == reward:
                return Status.DUPLICATE
            version = last + 1
        if version in known:
            return Status.DUPLICATE if known[version][1] == reward else Status.CONFLICT
        if version < last:
            return Status.DUPLICATE
        expired = self.silence == Unknown(WINDOW) and due is not None and self.now > due
        late = gone or (expired and not each["events"].get(event))
        each["late" if late else "events"].setdefault(event, {})[version] = (self.now, reward)
        return Status.LATE if late else Status.ACCEPTED

    def worth(self, events: dict[str, dict[int, tuple[float, float]]], upto: float = float("inf")) -> float | None:
        """What a reward was known to be at a time: the latest version of each event, in the order of the first ones."""
        told = {
            event: {version: each for version, each in versions.items() if each[0] <= upto}
            for event, versions in events.items()
        }
        by_time = sorted(
            (min(when for when, _ in versions.values()), event, versions[max(versions)][1])
            for event, versions in told.items()
            if versions
        )
        return AGGREGATES[self.aggregate]([value for *_, value in by_time]) if by_time else None

    def by_age(self, events: dict[str, dict[int, tuple[float, float]]], due: float) -> list[float]:
        """What came at each age that is over, of a window that ends at `due`."""
        worth = [0.0]
        for b in range(1, self.silence.ages + 1):
            end = due - WINDOW + WINDOW * b**2 / self.silence.ages**2
            if end <= self.over:
                found = self.worth(events, end if b < self.silence.ages else float("inf"))
                worth.append(self.silence.default if found is None else found)
        return [after - before for before, after in pairwise(worth)]

    @rule()
    def sweep(self) -> None:
        self.model.tick()
        self.model.tick()
        self.touch()

    @rule()
    def save(self) -> None:
        self.model.snapshot()

    @rule()
    def crash(self) -> None:
        self.restart()

    def restart(self) -> None:
        self.store = self.reopen()
        self.model = self.open_model()
        self.counts = dict.fromkeys(Status, 0)

    def agree_on_counts(self) -> None:
        assert {k: v for k, v in self.model.counts.items() if v} == {k: v for k, v in self.counts.items() if v}

    def teardown(self) -> None:
        if hasattr(self, "model"):
            assert self.model.verify() == []
            self.store.close()
            shutil.rmtree(self.folder)


class InMemory(ModelMachine):
    def open_store(self) -> Any:
        return MemoryStore()


class InAFile(ModelMachine):
    def open_store(self) -> Any:
        self.copies = 0
        return SQLiteStore(self.folder / "store.db", durable=False)

    def reopen(self) -> Any:
        """A crash: the files as they are, without anything being closed first."""
        self.copies += 1
        for path in self.folder.glob("store*.db*"):
            number = f"store{self.copies}.db"
            if path.name.startswith(self.store.path.name) and not path.name.endswith((".lock", "-shm")):
                shutil.copy(path, self.folder / path.name.replace(self.store.path.name, number))
        self.store.close()
        return SQLiteStore(self.folder / f"store{self.copies}.db", durable=False)


class OnAServer(ModelMachine):
    """A crash: another process takes over, from what the server has."""

    address = ""

    def open_store(self) -> Any:
        import psycopg

        with psycopg.connect(self.address, autocommit=True) as connection:
            connection.execute("DROP SCHEMA IF EXISTS belated CASCADE")
        return PostgresStore(self.address)

    def reopen(self) -> Any:
        self.store._connection.close()
        return PostgresStore(self.address)


def run_long(machine: type[ModelMachine], examples: int) -> None:
    """Play so many histories of up to a hundred steps."""
    run_state_machine_as_test(machine, settings=settings(CHECKS, max_examples=examples, stateful_step_count=100))
    print(f"\n{machine.__name__}: {examples} histories of up to 100 steps")
