"""Anything may happen to sessions, in any order: they must agree with a plain dictionary, before and after a crash."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import Bundle, initialize, invariant, multiple, rule
from model_machines import CHECKS, WINDOW, InAFile, InMemory, ModelMachine, OnAServer, run_long

from belated.decisions import ByAge, ConflictError, DecisionState, DefaultAfter, ForgottenError, Mature, Status, Unknown
from belated.decisions._plans import encode_state, plans_from_bytes

IDLE, HORIZON, FLOOR = 20.0, 3, 0.3
SILENCES = [Unknown(), Unknown(WINDOW), DefaultAfter(WINDOW, -1.0), Mature(WINDOW, 0.25), ByAge(WINDOW, 0.25, 3)]
NAMES = st.sampled_from(["one", "two", "three", "four", "five"])
REWARDS = st.sampled_from([0.0, 0.5, 1.0])
EVENTS = st.sampled_from(["", "x", "y"])
VERSIONS = st.sampled_from([0, 0, 0, 1, 2])


class Machine(ModelMachine):
    """`self.plain` is a dictionary of the sessions."""

    ids = Bundle("ids")

    @initialize(
        silence=st.sampled_from(SILENCES), aggregate=st.sampled_from(["first", "last", "sum"]), leaves=st.booleans()
    )
    def start(self, silence: Any, aggregate: str, leaves: bool) -> None:
        self.leaves, self.made = leaves, 0
        table = {
            "actions": ["a", "b", "c"], "categories": ["page"], "hashed": 3, "aggregate": aggregate, "floor": FLOOR,
            "horizon": HORIZON, "idle": IDLE, "agent": "psvi", "leaving": "terminal" if leaves else "cut",
        }  # fmt: skip
        self.begin(table, silence)
        self.open()
        self.parked: dict[str, Any] = {}
        self.forgotten: set[str] = set()
        self.keys: dict[str, tuple[Any, ...]] = {}
        self.sets: dict[int, Any] = {}
        self.plan: int | None = None

    def touch(self) -> None:
        """Any call that is stored ends the windows that are due, and the sessions that are idle."""
        super().touch()
        for each in self.plain.values():
            if each["ended"] is None and not each["discarded"] and each["latest"] + IDLE <= self.now:
                each["ended"], each["terminal"], each["due"] = "idle", self.leaves, self.now + WINDOW

    def distribution(self, name: str, page: str, offered: list[str]) -> Any:
        """The probabilities of the next step, from the products of all steps before: the formula, written out."""
        each = self.plain.get(name, {"plan": self.plan, "steps": []})
        plans = self.sets.get(each["plan"])
        if plans is None:
            return np.full(len(offered), 1.0 / len(offered))

        def likely(step: int, page: str, offered: list[str]) -> Any:
            found = plans.distributions(step, encode_state(self.settings, {"page": page}, offered))
            return FLOOR / len(offered) + (1.0 - FLOOR) * found

        weights = np.ones(plans.members)
        for t, step in enumerate(each["steps"]):
            if not step["shadow"]:
                weights *= likely(t, step["page"], step["offered"])[:, step["offered"].index(step["action"])]
        return weights @ likely(len(each["steps"]), page, offered) / weights.sum()

    @rule(
        target=ids, name=NAMES, page=st.sampled_from("pq"), offered=st.sampled_from([["a", "b", "c"], ["c", "a"]]),
        active=st.sampled_from([True, True, False]), shadow=st.sampled_from([False, False, True]),
        key=st.sampled_from([None, None, "k"]),
    )  # fmt: skip
    def decide(self, name: str, page: str, offered: list[str], active: bool, shadow: bool, key: str | None) -> Any:
        options: dict[str, Any] = {"session": name, "actions": offered, "active": active, "key": key}
        if shadow:
            options["chosen"] = "a"
        asked, each = (name, page, offered, active, shadow), self.plain.get(name)
        if key in self.keys:
            assert key is not None
            if self.keys[key][0] == asked:
                assert self.model.decide({"page": page}, **options).id == self.keys[key][1]
                self.touch()
            else:
                with pytest.raises(ConflictError, match="a different request"):
                    self.model.decide({"page": page}, **options)
            return multiple()
        if name in self.forgotten:
            with pytest.raises(ForgottenError):
                self.model.decide({"page": page}, **options)
            return multiple()
        idle = each is not None and each["latest"] + IDLE <= self.now
        if each is not None and (each["ended"] is not None or each["discarded"] or idle):
            with pytest.raises(ConflictError, match="cannot have another step"):
                self.model.decide({"page": page}, **options)
            return multiple()
        expected = self.distribution(name, page, offered)
        choice = self.model.decide({"page": page}, **options)
        self.touch()
        entry = self.model.lookup(choice.id)
        assert entry.probabilities == pytest.approx(tuple(expected), rel=1e-9)
        if shadow:
            assert (choice.action, choice.probability, choice.suggestion in offered) == ("a", None, True)
        else:
            assert choice.probability == pytest.approx(expected[offered.index(choice.action)], rel=1e-9)
        if each is None:
            each = self.plain[name] = {
                "steps": [], "events": self.parked.pop(name, {}), "late": {}, "ended": None, "terminal": False,
                "discarded": False, "due": None, "latest": self.now, "plan": self.plan,
            }  # fmt: skip
        assert (choice.session, choice.step) == (name, len(each["steps"]))
        self.made += 1
        each["steps"].append(
            {
                "id": choice.id, "page": page, "offered": offered, "action": choice.action, "shadow": shadow,
                "active": active, "cancelled": False, "events": {}, "late": {}, "number": self.made,
            }
        )  # fmt: skip
        each["latest"] = self.now
        if len(each["steps"]) == HORIZON:
            each["ended"], each["due"] = "full", self.now + WINDOW
        if key is not None:
            self.keys[key] = asked, choice.id
        return choice.id

    def find(self, wanted: str) -> tuple[dict[str, Any], dict[str, Any]] | None:
        pairs = [(each, step) for each in self.plain.values() for step in each["steps"] if step["id"] == wanted]
        return pairs[0] if pairs else None

    @rule(name=ids, reward=REWARDS, event=EVENTS, version=VERSIONS, again=st.booleans())
    def feedback(self, name: str, reward: float, event: str, version: int, again: bool) -> None:
        found, again = self.find(name), again and not version
        got = self.model.feedback(name, reward, event=event, version=version, correction=again)
        if found is None:
            self.expect(Status.UNKNOWN, got)
            return
        each, step = found
        gone = step["cancelled"] or each["discarded"]
        self.expect(self.judged(step, gone, each["due"], reward, event, version, again), got)

    @rule(name=NAMES, reward=REWARDS, event=EVENTS, version=VERSIONS, again=st.booleans())
    def reward(self, name: str, reward: float, event: str, version: int, again: bool) -> None:
        again = again and not version
        got = self.model.feedback("", reward, session=name, event=event, version=version, correction=again)
        if name in self.plain:
            each = self.plain[name]
            self.expect(self.judged(each, each["discarded"], each["due"], reward, event, version, again), got)
        elif name in self.forgotten:
            self.expect(Status.UNKNOWN, got)
        else:
            early = {"events": self.parked.setdefault(name, {}), "late": {}}
            status = self.judged(early, False, None, reward, event, version, again)
            self.expect(Status.PARKED if status is Status.ACCEPTED else status, got)

    @rule(name=NAMES, terminal=st.booleans(), where=st.sampled_from([None, "p"]))
    def end(self, name: str, terminal: bool, where: str | None) -> None:
        context = None if where is None or terminal else {"page": where}
        got = self.model.end(name, terminal=terminal, context=context)
        if name not in self.plain:
            self.expect(Status.UNKNOWN, got)
            return
        self.touch()
        each = self.plain[name]
        status = Status.ACCEPTED
        if each["discarded"]:
            status = Status.CONFLICT
        elif each["ended"] == "full" and (terminal or context):
            each["ended"], each["terminal"] = "asked", terminal
        elif each["ended"] is not None:
            same = each["terminal"] == terminal or each["ended"] == "full"
            status = Status.DUPLICATE if same else Status.CONFLICT
        else:
            each["ended"], each["terminal"], each["due"] = "asked", terminal, self.now + WINDOW
        self.expect(status, got)

    @rule(name=ids)
    def cancel(self, name: str) -> None:
        found, got = self.find(name), self.model.cancel(name)
        if found is None:
            self.expect(Status.UNKNOWN, got)
            return
        each, step = found
        self.expect(
            Status.DUPLICATE if step["cancelled"] else Status.CONFLICT if each["discarded"] else Status.ACCEPTED, got
        )
        step["cancelled"] = step["cancelled"] or not each["discarded"]

    @rule(name=NAMES)
    def discard(self, name: str) -> None:
        got = self.model.cancel(session=name)
        if name not in self.plain:
            self.expect(Status.UNKNOWN, got)
            return
        self.touch()
        self.expect(Status.DUPLICATE if self.plain[name]["discarded"] else Status.ACCEPTED, got)
        self.plain[name]["discarded"] = True

    @rule(name=ids)
    def activate(self, name: str) -> None:
        found, got = self.find(name), self.model.activate(name)
        if found is None:
            self.expect(Status.UNKNOWN, got)
            return
        each, step = found
        if step["active"]:
            self.expect(Status.DUPLICATE, got)
        elif step["cancelled"] or each["discarded"]:
            self.expect(Status.CONFLICT, got)
        else:
            step["active"] = True
            self.expect(Status.ACCEPTED, got)

    @rule(name=NAMES, keep=st.booleans())
    def erase(self, name: str, keep: bool) -> None:
        if name in self.plain and name != "one":
            count = self.model.erase(sessions=[name], keep_learned=keep)
            assert count == len(self.plain[name]["steps"])
            ids = {step["id"] for step in self.plain.pop(name)["steps"]}
            self.keys = {key: (asked, made) for key, (asked, made) in self.keys.items() if made not in ids}
            self.forgotten.add(name)

    @rule()
    def draw(self) -> None:
        place = self.model.plan()
        row = self.store.plan("m", place)
        self.sets[place] = plans_from_bytes(self.settings, row.content)
        self.plan = place

    @rule(seconds=st.sampled_from([0.5, 2.0, WINDOW, 12.0, 60.0]))
    def wait(self, seconds: float) -> None:
        self.now += seconds

    @rule()
    def stop(self) -> None:
        """What was learned is kept as well."""
        self.model.keep_learned()
        self.restart()

    def events(self, each: dict[str, Any], step: dict[str, Any]) -> dict[str, Any]:
        """The rewards of a step, and of the last one also those of the session."""
        events = dict(step["events"])
        if step is each["steps"][-1]:
            events |= {"\x1f" + event: versions for event, versions in each["events"].items()}
        return events

    def standing(self, each: dict[str, Any], step: dict[str, Any]) -> tuple[DecisionState, float | None, float | None]:
        """What the clerk says of a step: its state, the reward that is known, and the one that counts."""
        reward = self.worth(self.events(each, step))
        if step["cancelled"] or each["discarded"]:
            return DecisionState.CANCELLED, reward, None
        if not step["active"]:
            return DecisionState.INACTIVE, reward, None
        over = self.silence.seconds is not None and each["due"] is not None and each["due"] <= self.over
        if reward is not None:
            held = isinstance(self.silence, Mature | ByAge) and not over
            return DecisionState.REWARDED, reward, None if held else reward
        if not over:
            return DecisionState.IN_FLIGHT, None, None
        default = {DefaultAfter: -1.0, Mature: 0.25, ByAge: 0.25}.get(type(self.silence))
        return (DecisionState.EXPIRED if default is None else DecisionState.DEFAULTED), None, default

    @invariant()
    def the_dictionary_agrees(self) -> None:
        if not hasattr(self, "plain"):
            return
        self.agree_on_counts()
        flying = []
        for name, each in self.plain.items():
            found = self.model.lookup_session(name)
            status = "cancelled" if each["discarded"] else "open" if each["ended"] is None else "ended"
            assert (found.status, found.plan) == (status, each["plan"]), (found, each)
            if each["ended"] is not None:
                due = None if self.silence.seconds is None else each["due"]
                assert (found.terminal, found.due) == (each["terminal"], due)
            assert len(found.steps) == len(each["steps"])
            for entry, step in zip(found.steps, each["steps"], strict=True):
                expected = self.standing(each, step)
                assert (entry.status, entry.reward, entry.learned) == expected, (entry, step, each)
                assert (entry.id, entry.action) == (step["id"], step["action"])
                if isinstance(self.silence, ByAge):
                    counts = step["active"] and not step["cancelled"] and not each["discarded"] and each["due"]
                    parts = self.by_age(self.events(each, step), each["due"]) if counts else []
                    assert list(entry.parts) == pytest.approx(parts), (entry, step, each)
                if expected[0] is DecisionState.IN_FLIGHT:
                    flying.append((step["number"], step["id"]))
        oldest = self.model.oldest()
        assert (oldest.id if oldest else None, self.model.in_flight) == (
            min(flying)[1] if flying else None,
            len(flying),
        )
        summary = self.model.summary()["sessions"]
        assert summary["open"] == sum(each["ended"] is None and not each["discarded"] for each in self.plain.values())
        assert summary["plan"] == self.plan


class MemoryMachine(Machine, InMemory): ...


class SQLiteMachine(Machine, InAFile): ...


class PostgresMachine(Machine, OnAServer): ...


TestMemory = MemoryMachine.TestCase
TestMemory.settings = settings(CHECKS, max_examples=30)
TestSQLite = SQLiteMachine.TestCase
TestSQLite.settings = settings(CHECKS, max_examples=10)


@pytest.mark.slow
def test_hundreds_of_histories_in_memory() -> None:
    run_long(MemoryMachine, 300)


@pytest.mark.slow
def test_hundreds_of_histories_in_a_file() -> None:
    run_long(SQLiteMachine, 100)


@pytest.mark.slow
def test_histories_on_a_server(postgres_address: str) -> None:
    PostgresMachine.address = postgres_address
    run_long(PostgresMachine, 40)
