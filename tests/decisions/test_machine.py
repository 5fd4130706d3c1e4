"""Anything may happen to a model, in any order: it must agree with a plain dictionary, before and after a crash."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import Bundle, initialize, invariant, multiple, rule
from model_machines import AGGREGATES, CHECKS, WINDOW, InAFile, InMemory, ModelMachine, OnAServer, run_long

from belated.decisions import ByAge, ConflictError, DecisionState, DefaultAfter, Mature, Status, Unknown

SILENCES = [
    Unknown(), Unknown(WINDOW), DefaultAfter(WINDOW, -1.0), Mature(WINDOW, 0.25), ByAge(WINDOW, 0.25, ages=4),
    ByAge(WINDOW),
]  # fmt: skip
REWARDS = st.sampled_from([-1.0, 0.0, 0.5, 2.0])
EVENTS = st.sampled_from(["", "one", "two"])


class Machine(ModelMachine):
    """`self.plain` is a dictionary of the decisions."""

    ids = Bundle("ids")

    @initialize(
        silence=st.sampled_from(SILENCES),
        aggregate=st.sampled_from(sorted(AGGREGATES)),
        shared=st.booleans(),
        forgetting=st.sampled_from([None, {"decisions": 3.0}, {"seconds": 7.0}]),
        signalled=st.booleans(),
    )
    def start(self, silence: Any, aggregate: str, shared: bool, forgetting: Any, signalled: bool) -> None:
        self.shared, self.forgetting = shared, forgetting
        encoding: dict[str, Any] = {"features": ["x"], "actions": ["a", "b"]}
        if shared:
            encoding = {"features": ["x"], "action_features": ["u"], "actions": {"a": {"u": 1.0}, "b": {"u": -2.0}}}
        table = {**encoding, "aggregate": aggregate, "floor": 0.1}
        if forgetting:
            table["forgetting"] = forgetting
        self.begin(table, silence)
        if signalled and isinstance(silence, ByAge):
            object.__setattr__(self.settings, "signals", ("click",))
        self.open()

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

    @rule(name=ids, reward=REWARDS, event=EVENTS, version=st.sampled_from([0, 0, 0, 1, 2]), correction=st.booleans())
    def feedback(self, name: str, reward: float, event: str, version: int, correction: bool) -> None:
        each, correction = self.plain[name], correction and not version
        got = self.model.feedback(name, reward, event=event, version=version, correction=correction)
        self.expect(self.judged(each, each["cancelled"], each["due"], reward, event, version, correction), got)

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
        self.expect(expected, self.model.signal(name, "click", value, correction=True))

    @rule(name=ids)
    def cancel(self, name: str) -> None:
        expected = Status.DUPLICATE if self.plain[name]["cancelled"] else Status.ACCEPTED
        self.expect(expected, self.model.cancel(name))
        self.plain[name]["cancelled"] = True

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
        self.expect(expected, self.model.activate(name))

    @rule(name=st.sampled_from(["never", "", "0190c0de-0000-7000-8000-000000000000"]), reward=REWARDS)
    def stranger(self, name: str, reward: float) -> None:
        expected = Status.UNKNOWN if name else Status.INVALID
        self.expect(expected, self.model.feedback(name, reward))

    @rule(name=ids, bad=st.sampled_from([float("nan"), float("inf"), 1e13, "1", True, None]))
    def nonsense(self, name: str, bad: Any) -> None:
        self.expect(Status.INVALID, self.model.feedback(name, bad))

    @rule(seconds=st.sampled_from([0.5, 2.0, WINDOW, 60.0, -3.0]))
    def wait(self, seconds: float) -> None:
        self.now = max(self.now, self.now + seconds)  # the log's time never runs backwards

    def standing(self, each: dict[str, Any]) -> tuple[DecisionState, float | None, float | None]:
        """What the clerk says: the state, the reward that is known, and the one that counts."""
        reward = self.worth(each["events"])
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

    def parts(self, each: dict[str, Any]) -> list[float]:
        """What is learned of a decision: its reward, or what the clerk's book says about each age that is over."""
        if not isinstance(self.silence, ByAge):
            learned = self.standing(each)[2]
            return [] if learned is None else [learned]
        if each["cancelled"] or not each["active"]:
            return []
        return self.by_age(each["events"], each["due"])

    @invariant()
    def the_dictionary_agrees(self) -> None:
        if not hasattr(self, "plain"):
            return
        self.agree_on_counts()
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
        if isinstance(self.silence, ByAge):  # its regressions are in test_by_age and test_signals; here, what goes in
            for name, each in () if self.settings.signals else self.plain.items():
                tracked = self.model.state.find(name)
                found = () if tracked is None or tracked.tally is None else tracked.tally.parts
                assert list(found) == pytest.approx(self.parts(each)), each
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
            assert self.model.summary()["decisions"] == len(self.plain)
        super().teardown()


class MemoryMachine(Machine, InMemory): ...


class SQLiteMachine(Machine, InAFile): ...


class PostgresMachine(Machine, OnAServer): ...


TestMemory = MemoryMachine.TestCase
TestMemory.settings = settings(CHECKS, max_examples=60)
TestSQLite = SQLiteMachine.TestCase
TestSQLite.settings = settings(CHECKS, max_examples=25)


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
