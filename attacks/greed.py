"""Excessive requests: each is rejected with an error that has the figures, or answered within seconds."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np

from attacks.tally import Tally
from belated.decisions import MemoryStore, Model, ModelSettings, Reward, Status, _sessions
from belated.errors import BelatedError

#: Maximum seconds of a request.
LONG = 5.0


class Clock:
    """A clock that is moved by hand."""

    def __init__(self) -> None:
        self.now = 1_700_000_000.0

    def __call__(self) -> float:
        return self.now


def model_of(clock: Clock | None = None, **changes: Any) -> Model:
    """Return a model without declared actions."""
    table = {"features": ["x"], "silence": {"kind": "unknown"}, **changes}
    return Model("greedy", ModelSettings.from_table(table), MemoryStore(), clock=clock or Clock())


def many_names(rng: np.random.Generator) -> None:
    """A ranking of thousands of new names, and the log read again."""
    model, n = model_of(), int(rng.integers(4_000, 20_000))
    names = [f"{rng.integers(2**60)}-{i}" for i in range(n)]
    choice = model.decide({"x": 1.0}, actions=names, size=n)
    assert sorted(choice.ranking) == sorted(names)
    assert model.verify() == []


def ever_more_names(rng: np.random.Generator) -> None:
    """New names until the limit: then known ones still work."""
    features = [str(each) for each in range(int(rng.integers(200, 256)))]
    model, context = model_of(features=features), dict.fromkeys(features, 0.5)
    done = 0
    try:
        for done in range(1000):
            model.decide(context, actions=[f"name {done}"])
    except BelatedError as error:
        assert "GB of memory" in str(error)
    assert 10 < done < 500
    model.decide(context, actions=["name 0"])


def long_vectors(rng: np.random.Generator) -> None:
    """Thousands of hashed places where posteriors are dense, and more than a million where they are sparse."""
    hashed = {"categories": ["c"], "actions": [str(i) for i in range(10)]}
    tables: list[dict[str, Any]] = [
        {**hashed, "hashed": int(rng.integers(1025, 10_000)), "silence": {"kind": "by_age", "seconds": 60.0}},
        {**hashed, "hashed": int(rng.integers(1025, 10_000)), "horizon": 4, "reward_range": [0.0, 1.0]},
        {**hashed, "hashed": int(rng.integers(2**20 + 1, 2**40))},
    ]
    for table in tables:
        try:
            model_of(**table)
        except BelatedError:
            continue
        raise AssertionError("a model that does not fit was made")


def many_draws(rng: np.random.Generator) -> None:
    """The maximum number of draws, with more and more actions."""
    model = model_of(draws=10_000)
    for n in (10, 100, 500, int(rng.integers(1000, 50_000))):
        try:
            model.decide({"x": 1.0}, actions=[str(i) for i in range(n)])
        except BelatedError as error:
            assert n > 500 and "multiplications" in str(error)


def made_up_ids(rng: np.random.Generator) -> None:
    """Rewards for ten thousand nonexistent decisions: an hour later others can be parked again."""
    clock = Clock()
    model = model_of(clock)
    model.feedback_many([Reward(model.new_id(), 1.0) for _ in range(11_000)])
    assert model.feedback(model.new_id(), 1.0).status is Status.UNKNOWN
    clock.now += 3_600.0 + 360.0 + float(rng.uniform(0, 1e5))
    early = model.new_id()
    assert model.feedback(early, 1.0).status is Status.PARKED
    model.record({"x": 1.0}, "a", actions=["a"], id=early)
    assert model.lookup(early).reward == 1.0
    assert (model.summary()["parked"], model.summary()["lapsed"]) == (0, 10_000)


def unsafe_names(rng: np.random.Generator) -> None:
    """Names with line breaks, terminal control sequences or bidirectional overrides."""
    bad = f"a{chr(rng.choice([0, 10, 13, 27, 127, 0x9B, 0x202E, 0x2066]))}b"
    model = model_of()
    tries: list[Callable[[], Any]] = [
        lambda: model.decide({"x": 1.0}, actions=[bad]),
        lambda: model.decide({"x": 1.0}, actions=["a"], key=bad),
        lambda: model.decide({"x": 1.0}, actions=["a"], id=bad),
        lambda: model_of(actions=[bad]),
        lambda: model_of(features=[bad]),
        lambda: Model(bad, model.settings, MemoryStore()),
    ]
    for place, one in enumerate(tries):
        try:
            one()
        except BelatedError as error:
            assert str(error).isprintable()
            continue
        raise AssertionError(f"name {bad!r} was accepted in place {place}")


def many_ages(rng: np.random.Generator) -> None:
    """Learning by age multiplies all work by the ages: excessive models are rejected, and accepted ones work."""
    silence = {"kind": "by_age", "seconds": 3600.0, "ages": int(rng.integers(16, 65))}
    features = [str(each) for each in range(int(rng.integers(200, 400)))]
    actions = [str(each) for each in range(int(rng.integers(100, 400)))]
    try:
        model_of(silence=silence, features=features, actions=actions)
    except BelatedError as error:
        assert any(each in str(error) for each in ("GB of memory", "multiplications")), error
    else:
        raise AssertionError("a model that does not fit was made")
    clock = Clock()
    model = model_of(clock, silence=silence, actions=["a", "b"])
    model.decide_many([{"x": 1.0}] * 500)
    clock.now += 7200.0
    while model.tick():
        pass
    assert model.in_flight == 0


def many_sessions(rng: np.random.Generator) -> None:
    """More open sessions than allowed: a new one is rejected, open ones continue, and idle ones make room."""
    clock, most = Clock(), int(rng.integers(50, 300))
    model = model_of(clock, horizon=int(rng.integers(2, 10_000)), agent="greedy", actions=["a", "b"], idle=60.0)
    with mock.patch.object(_sessions, "MOST_OPEN", most):
        for each in range(most):
            model.decide({"x": 1.0}, session=f"visit {each}")
        try:
            model.decide({"x": 1.0}, session="one more")
        except BelatedError as error:
            assert f"{most} sessions are already open" in str(error)
        else:
            raise AssertionError("a session more than may be open")
        model.decide({"x": 1.0}, session="visit 0")
        clock.now += 61.0
        model.tick()
        model.decide({"x": 1.0}, session="one more")
    assert model.verify() == []


KINDS = (
    many_names, ever_more_names, long_vectors, many_draws, made_up_ids, unsafe_names, many_ages, many_sessions
)  # fmt: skip


def attack(tries: int, folder: Path, rng: np.random.Generator, tally: Tally) -> None:
    """Make each kind of request in turn."""
    del folder
    for each in range(tries):
        if not tally.left():
            return
        kind = KINDS[each % len(KINDS)]
        with tally.attempt(f"{kind.__name__} {each}"):
            began = time.process_time()
            kind(rng)
            took = time.process_time() - began
            if took > LONG * (3 if kind is made_up_ids else 1):
                raise AssertionError(f"it took {took:.1f} s")
