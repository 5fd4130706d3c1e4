"""Callers that put a service under load and know what it has acknowledged, to be compared after it was killed."""

from __future__ import annotations

import http.client
import random
import threading
from collections.abc import Iterable
from typing import Any

from serving import Line

THREADS = 4


class Known:
    """What the service has acknowledged, and what was sent without an answer."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.actions: dict[str, str] = {}
        self.keys: dict[str, str] = {}
        """Of each key that was answered, the id."""
        self.rewards: dict[str, dict[str, tuple[int, float]]] = {}
        """Of each decision, the version and reward of each event that was acknowledged."""
        self.unsure: dict[tuple[str, str], set[tuple[int, float]]] = {}
        """Sent, no answer: it may have been stored, or not."""


class Load(threading.Thread):
    """One caller: decides, rewards, sends again what it has sent, corrects, until the service is gone."""

    def __init__(self, known: Known, port: int, seed: int) -> None:
        super().__init__()
        self.known, self.line, self.rng = known, Line(port), random.Random(seed)
        self.unanswered = False
        """Whether what was answered last had been sent before, without an answer."""
        self.mine: list[str] = []
        self.wrong: list[Any] = []
        self.done = 0

    def run(self) -> None:
        try:
            while True:
                self.step()
                self.done += 1
        except (OSError, http.client.HTTPException, ValueError):
            self.line.close()  # killed; what was being sent is unsure
        except Exception as error:
            self.wrong.append(error)

    def step(self) -> None:
        what = self.rng.random()
        if what < 0.45 or not self.mine:
            self.decide()
        elif what < 0.5:
            self.decide_again()
        else:
            self.reward(self.rng.choice(self.mine[-50:]))

    def ask(self, path: str, body: Any) -> Any:
        code, found = self.line.ask(path, body)
        if code != 200:
            self.wrong.append((path, body, code, found))
        return found

    def decide(self) -> None:
        key = f"{self.rng.getrandbits(64):x}"
        body = {"context": {"x": self.rng.random(), "y": 1.0}, "key": key}
        found = self.ask("/v1/models/ads/decide", body)
        with self.known.lock:
            if found["id"] in self.known.actions:
                self.wrong.append(("an id was given twice", found))
            self.known.actions[found["id"]], self.known.keys[key] = found["action"], found["id"]
            self.known.rewards[found["id"]] = {}
        self.mine.append(found["id"])
        self.last = (body, found)

    def decide_again(self) -> None:
        body, before = self.last
        found = self.ask("/v1/models/ads/decide", body)
        if found != before:
            self.wrong.append(("another answer for the same key", before, found))

    def reward(self, made: str) -> None:
        event = self.rng.choice(["first", "second"])
        known = self.known.rewards[made].get(event)
        version = 0 if known is None else known[0]
        correct = known is not None and self.rng.random() < 0.5
        other = (version + correct, float(self.rng.randrange(100)))
        sent = known if known is not None and not correct else other  # a repeat, or something new
        name = (made, event)
        with self.known.lock:
            self.known.unsure.setdefault(name, set()).add(sent)
        body = {"id": made, "event": event, "version": sent[0], "reward": sent[1]}
        found = self.ask("/v1/models/ads/feedback", body)
        right = {"duplicate" if sent == known else "accepted", "duplicate" if self.unanswered else ""}
        if found["status"] not in right:
            self.wrong.append((body, found, known))
        with self.known.lock:
            self.known.unsure.pop(name)
            self.known.rewards[made][event] = sent


def check(known: Known, port: int, ids: Iterable[str]) -> None:
    """Ask for decisions, and compare their rewards with what was acknowledged."""
    line = Line(port)
    for made in ids:
        action = known.actions[made]
        code, found = line.ask(f"/v1/decisions/{made}")
        assert code == 200, f"the decision {made} was acknowledged and is lost"
        assert found["action"] == action
        counted = {each["event"]: (each["version"], each["reward"]) for each in found["history"] if each["counted"]}
        for event, acknowledged in known.rewards[made].items():
            possible = {acknowledged, *known.unsure.get((made, event), ())}
            assert counted[event] in possible, f"{event} of {made} is {counted[event]}, acknowledged {acknowledged}"
        for (_, event), sent in [item for item in known.unsure.items() if item[0][0] == made]:
            if event in counted:  # it was stored, although there was no answer: from now on it is known
                assert counted[event] in {*sent, known.rewards[made].get(event)}
                known.rewards[made][event] = counted[event]
        together = sum(reward for _, reward in counted.values()) if counted else None
        assert found["reward"] == together, "a reward counts twice, or not at all"
    known.unsure.clear()
    line.close()
