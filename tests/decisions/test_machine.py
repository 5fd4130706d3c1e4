"""Anything may happen to a model, in any order: it must agree with a plain dictionary, before and after a crash."""

from __future__ import annotations

import shutil
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    Bundle,
    RuleBasedStateMachine,
    initialize,
    invariant,
    multiple,
    rule,
    run_state_machine_as_test,
)

from belated.decisions import (
    ByAge,
    ConflictError,
    DecisionState,
    DefaultAfter,
    Mature,
    MemoryStore,
    Model,
    ModelSettings,
    SQLiteStore,
    Status,
    Unknown,
)
from belated.decisions._store.postgres import PostgresStore

WINDOW = 5.0
SILENCES = [
    Unknown(), Unknown(WINDOW), DefaultAfter(WINDOW, -1.0), Mature(WINDOW, 0.25), ByAge(WINDOW, 0.25, ages=4),
    ByAge(WINDOW),
]  # fmt: skip
REWARDS = st.sampled_from([-1.0, 0.0, 0.5, 2.0])
EVENTS = st.sampled_from(["", "one", "two"])
AGGREGATES: dict[str, Any] = {
    "first": lambda values: values[0],
    "last": lambda values: values[-1],
    "sum": sum,
    "mean": lambda values: sum(values) / len(values),
    "max": max,
    "min": min,
}


class Machine(RuleBasedStateMachine):
    """`self.plain` is the dictionary: what was decided, and what a careful clerk would have written beside it."""

    ids = Bundle("ids")

    def open_store(self) -> Any:
        raise NotImplementedError

    @initialize(
        silence=st.sampled_from(SILENCES),
        aggregate=st.sampled_from(sorted(AGGREGATES)),
        shared=st.booleans(),
        forgetting=st.sampled_from([None, {"decisions": 3.0}, {"seconds": 7.0}]),
        signalled=st.booleans(),
    )
    def start(self, silence: Any, aggregate: str, shared: bool, forgetting: Any, signalled: bool) -> None:
        self.folder = Path(tempfile.mkdtemp())
        self.now, self.over = 1000.0, 0.0
        self.silence, self.aggregate, self.shared, self.forgetting = silence, aggregate, shared, forgetting
        encoding: dict[str, Any] = {"features": ["x"], "actions": ["a", "b"]}
        if shared:
            encoding = {"features": ["x"], "action_features": ["u"], "actions": {"a": {"u": 1.0}, "b": {"u": -2.0}}}
        table = {**encoding, "silence": {"kind": "unknown"}, "aggregate": aggregate, "floor": 0.1}
        if forgetting:
            table["forgetting"] = forgetting
        self.settings = ModelSettings.from_table(table)
        object.__setattr__(self.settings, "silence", silence)
        if signalled and isinstance(silence, ByAge):
            object.__setattr__(self.settings, "signals", ("click",))
        self.store = self.open_store()
        self.model = self.open_model()
        self.plain: dict[str, dict[str, Any]] = {}
        self.counts = dict.fromkeys(Status, 0)

    def open_model(self) -> Model:
        return Model("m", self.settings, self.store, clock=lambda: self.now)

    def expect(self, status: Status) -> None:
        self.counts[status] += 1

    @rule(target=ids, x=st.sampled_from([-1.0, 0.5, 3.0]), active=st.booleans(), key=st.sampled_from([None, "k", "l"]))
    def decide(self, x: float, active: bool, key: str | None) -> Any:
        known = [name for name, each in self.plain.items() if key is not None and each["key"] == key]
        if known:
            if (self.plain[known[0]]["x"], self.plain[known[0]]["asked"]) != (x, active):
                try:
                    self.model.decide({"x": x}, active=active, key=key)
                except ConflictError:
                    return multiple()
                raise AssertionError("a key was used for two requests")
            assert self.model.decide({"x": x}, active=active, key=key).id == known[0]
            self.touch()
            return known[0]
        choice = self.model.decide({"x": x}, active=active, key=key)
        assert choice.id not in self.plain
        self.plain[choice.id] = {
            "x": x, "action": choice.action, "asked": active, "active": active, "made": self.now, "key": key,
            "number": len(self.plain) + 1, "due": self.now + WINDOW if active else None, "cancelled": False,
            "events": {}, "late": {}, "click": None,
        }  # fmt: skip
        self.touch()
        return choice.id

    def touch(self) -> None:
        """Any call ends the windows that are due."""
        self.over = max(self.over, self.now)

    @rule(name=ids, reward=REWARDS, event=EVENTS, version=st.sampled_from([0, 0, 0, 1, 2]), correction=st.booleans())
    def feedback(self, name: str, reward: float, event: str, version: int, correction: bool) -> None:
        each = self.plain[name]
        known = {**each["events"].get(event, {}), **each["late"].get(event, {})}
        last = max(known, default=-1)
        if version:
            correction = False
        expired = self.silence == Unknown(WINDOW) and each["due"] is not None and self.now > each["due"]
        if correction:
            same = bool(known) and known[last][1] == reward
            version_kept = last + 1
            expected = Status.DUPLICATE if same else None
        else:
            version_kept = version
            expected = None
            if version in known:
                expected = Status.DUPLICATE if known[version][1] == reward else Status.CONFLICT
            elif version < last:
                expected = Status.DUPLICATE
        if expected is None:
            late = each["cancelled"] or (expired and not each["events"].get(event))
            each["late" if late else "events"].setdefault(event, {})[version_kept] = (self.now, reward)
            expected = Status.LATE if late else Status.ACCEPTED
        self.expect(expected)
        got = self.model.feedback(name, reward, event=event, version=version, correction=correction)
        assert got.status is expected, (got, expected)
        self.touch()

    @rule(name=ids, value=REWARDS)
    def signal(self, name: str, value: float) -> None:
        """It is no reward: the clerk keeps the latest value, and nothing else changes for him."""
        each = self.plain[name]
        expected = Status.LATE if each["cancelled"] else Status.ACCEPTED
        if not self.settings.signals:
            expected = Status.INVALID
        elif each["click"] == value:
            expected = Status.DUPLICATE
        else:
            each["click"] = value
        self.expect(expected)
        assert self.model.signal(name, "click", value, correction=True).status is expected
        self.touch()

    @rule(name=ids)
    def cancel(self, name: str) -> None:
        expected = Status.DUPLICATE if self.plain[name]["cancelled"] else Status.ACCEPTED
        self.expect(expected)
        assert self.model.cancel(name).status is expected
        self.plain[name]["cancelled"] = True
        self.touch()

    @rule(name=ids)
    def activate(self, name: str) -> None:
        each = self.plain[name]
        expected = Status.ACCEPTED
        if each["active"]:
            expected = Status.DUPLICATE
        elif each["cancelled"]:
            expected = Status.CONFLICT
        else:
            each["active"], each["due"] = True, self.now + WINDOW
        self.expect(expected)
        assert self.model.activate(name).status is expected
        self.touch()

    @rule(name=st.sampled_from(["never", "", "0190c0de-0000-7000-8000-000000000000"]), reward=REWARDS)
    def stranger(self, name: str, reward: float) -> None:
        expected = Status.UNKNOWN if name else Status.INVALID
        self.expect(expected)
        assert self.model.feedback(name, reward).status is expected
        self.touch()

    @rule(name=ids, bad=st.sampled_from([float("nan"), float("inf"), 1e13, "1", True, None]))
    def nonsense(self, name: str, bad: Any) -> None:
        self.expect(Status.INVALID)
        assert self.model.feedback(name, bad).status is Status.INVALID
        self.touch()

    @rule(seconds=st.sampled_from([0.5, 2.0, WINDOW, 60.0, -3.0]))
    def wait(self, seconds: float) -> None:
        self.now = max(self.now, self.now + seconds)  # the log's time never runs backwards

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
        self.store = self.reopen()
        self.model = self.open_model()
        self.counts = dict.fromkeys(Status, 0)

    def reopen(self) -> Any:
        return self.store

    def standing(self, each: dict[str, Any]) -> tuple[DecisionState, float | None, float | None]:
        """What the clerk says: the state, the reward that is known, and the one that counts."""
        reward = self.known(each, np.inf)
        if each["cancelled"]:
            return DecisionState.CANCELLED, reward, None
        if not each["active"]:
            return DecisionState.INACTIVE, reward, None
        over = not isinstance(self.silence, Unknown) or self.silence.seconds is not None
        over = over and each["due"] <= self.over
        if reward is not None:
            held = isinstance(self.silence, Mature | ByAge) and not over
            return DecisionState.REWARDED, reward, None if held else reward
        if not over:
            return DecisionState.IN_FLIGHT, None, None
        default = -1.0 if isinstance(self.silence, DefaultAfter) else getattr(self.silence, "default", None)
        return (DecisionState.EXPIRED if default is None else DecisionState.DEFAULTED), None, default

    def known(self, each: dict[str, Any], upto: float) -> float | None:
        """What the reward of a decision was known to be at a time."""
        events = {
            event: {version: told for version, told in versions.items() if told[0] <= upto}
            for event, versions in each["events"].items()
        }
        by_time = sorted(
            (min(when for when, _ in versions.values()), event, versions[max(versions)][1])
            for event, versions in events.items()
            if versions
        )
        return AGGREGATES[self.aggregate]([value for *_, value in by_time]) if by_time else None

    def parts(self, each: dict[str, Any]) -> list[float]:
        """What is learned of a decision: its reward, or what the clerk's book says about each age that is over."""
        if not isinstance(self.silence, ByAge):
            learned = self.standing(each)[2]
            return [] if learned is None else [learned]
        if each["cancelled"] or not each["active"]:
            return []
        worth = [0.0]
        for b in range(1, self.silence.ages + 1):
            end = each["due"] - WINDOW + WINDOW * b**2 / self.silence.ages**2
            if end <= self.over:
                found = self.known(each, end if b < self.silence.ages else np.inf)
                worth.append(self.silence.default if found is None else found)
        return np.diff(worth).tolist()

    @invariant()
    def the_dictionary_agrees(self) -> None:
        if not hasattr(self, "plain"):
            return
        assert {k: v for k, v in self.model.counts.items() if v} == {k: v for k, v in self.counts.items() if v}
        flying = [name for name, each in self.plain.items() if self.standing(each)[0] is DecisionState.IN_FLIGHT]
        oldest = self.model.oldest()
        assert (oldest.id if oldest else None, self.model.in_flight) == (flying[0] if flying else None, len(flying))
        logs: dict[int, dict[str, list[tuple[Any, float, float]]]] = {}
        for name, each in self.plain.items():
            state, reward, learned = self.standing(each)
            entry = self.model.lookup(name)
            assert (entry.status, entry.reward, entry.learned) == (state, reward, learned), (entry, each)
            for age, part in enumerate(self.parts(each)):
                time = 0.0
                if self.forgetting:
                    unit = next(iter(self.forgetting))
                    time = (each["number"] if unit == "decisions" else each["made"]) / self.forgetting[unit]
                u = {"a": 1.0, "b": -2.0}[each["action"]]
                x = np.array([1.0, u, each["x"], each["x"] * u] if self.shared else [1.0, each["x"]])
                logs.setdefault(age, {}).setdefault("" if self.shared else each["action"], []).append((x, part, time))
        if self.settings.signals:  # their regressions are in test_signals; here the log must give the same state again
            return
        last = len(self.plain) if self.forgetting and "decisions" in self.forgetting else self.now
        for name, weights in self.model.weights().items():
            total = np.zeros(len(weights))
            for log in logs.values():
                total += self.refit(log.get(name, []), len(weights), last, self.kappa(log))
            np.testing.assert_allclose(weights, total, rtol=1e-9, atol=1e-9)

    def kappa(self, log: dict[str, list[tuple[Any, float, float]]]) -> float:
        """The mean square length, as a power of two."""
        rows = [row for each in log.values() for row in each]
        newest = max((time for *_, time in rows), default=0.0)
        weights = [2.0 ** (time - newest) for *_, time in rows]
        lengths = sum(w * x @ x for w, (x, _, _) in zip(weights, rows, strict=True))
        return float(2.0 ** round(np.log2(lengths / sum(weights)))) if rows else 1.0

    def refit(self, log: list[tuple[Any, float, float]], d: int, last: float, kappa: float) -> Any:
        """The textbook: (Σ w xxᵀ + κI)⁻¹ Σ w xy. The prior is renewed eight times per half-life."""
        now = last / next(iter(self.forgetting.values())) if self.forgetting else 0.0
        now = np.floor(8 * now) / 8 if self.forgetting else 0.0
        weights = [2.0 ** (time - now) for _, _, time in log]
        gram = sum((w * np.outer(x, x) for w, (x, _, _) in zip(weights, log, strict=True)), np.zeros((d, d)))
        moment = sum((w * y * x for w, (x, y, _) in zip(weights, log, strict=True)), np.zeros(d))
        return np.linalg.solve(gram + kappa * np.eye(d), moment)

    def teardown(self) -> None:
        if hasattr(self, "model"):
            assert self.model.verify() == []
            assert self.model.summary()["decisions"] == len(self.plain)
            self.store.close()
            shutil.rmtree(self.folder)


class MemoryMachine(Machine):
    def open_store(self) -> Any:
        return MemoryStore()


class SQLiteMachine(Machine):
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


class PostgresMachine(Machine):
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


CHECKS = settings(deadline=None, stateful_step_count=30, suppress_health_check=list(HealthCheck))
TestMemory = MemoryMachine.TestCase
TestMemory.settings = settings(CHECKS, max_examples=60)
TestSQLite = SQLiteMachine.TestCase
TestSQLite.settings = settings(CHECKS, max_examples=25)


def run_long(machine: type[Machine], examples: int) -> None:
    """Play so many histories of up to a hundred steps."""
    run_state_machine_as_test(machine, settings=settings(CHECKS, max_examples=examples, stateful_step_count=100))
    print(f"\n{machine.__name__}: {examples} histories of up to 100 steps")


@pytest.mark.slow
def test_hundreds_of_histories_in_memory() -> None:
    run_long(MemoryMachine, 500)


@pytest.mark.slow
def test_hundreds_of_histories_in_a_file() -> None:
    run_long(SQLiteMachine, 200)


@pytest.mark.slow
def test_histories_on_a_server(postgres_address: str) -> None:
    PostgresMachine.address = postgres_address
    run_long(PostgresMachine, 30)
