"""Models that share a service: neither a slow model nor readers delay the others."""

from __future__ import annotations

import threading
import time
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np

from attacks.tally import Tally
from belated.decisions import Decide, Model, ModelSettings, SQLiteStore
from belated.decisions._posterior import Posterior
from belated.service._writer import Request, Writer

SILENCE = {"silence": {"kind": "unknown"}}
QUICK = {"actions": ["a", "b"], "features": ["x"], **SILENCE}
NAMES = [f"x{i}" for i in range(200)]
SLOW = {"actions": [f"a{i}" for i in range(50)], "features": NAMES, "draws": 2_000, **SILENCE}


def attack(tries: int, folder: Path, rng: np.random.Generator, tally: Tally) -> None:
    """Query a fast model while a slow one is busy, and while its weights are read."""
    store = SQLiteStore(folder / "d.db", durable=False)
    quick, slow = (Model(name, ModelSettings.from_table(each), store) for name, each in (("q", QUICK), ("s", SLOW)))
    writer = Writer(lambda: [quick, slow])
    took: dict[str, list[float]] = {"alone": [], "beside a slow model": [], "while weights are computed": []}
    try:
        for number in range(tries):
            if tally.left():
                took["alone"] += _decide(writer, quick)
                with tally.attempt(f"{number}: beside a slow model"):
                    took["beside a slow model"] += _beside(writer, quick, slow, rng)
                with tally.attempt(f"{number}: while weights are computed"):
                    took["while weights are computed"] += _while_read(writer, quick)
    finally:
        writer.close()
        store.close()
    told = ", ".join(f"{1000 * np.median(each):.1f} ms {where}" for where, each in took.items() if each)
    tally.notes.append(f"median of a decision: {told}")


class Asked:
    """A request, and whether it was answered."""

    def __init__(self, writer: Writer, model: Model, contexts: list[dict[str, Any]]) -> None:
        self.told, self.answer = threading.Event(), None
        writer.submit(Request(model, [Decide(context) for context in contexts], self.done))

    def done(self, answer: Any) -> None:
        """Keep the answer."""
        self.answer = answer
        self.told.set()


def _decide(writer: Writer, model: Model) -> list[float]:
    """Make ten decisions in sequence, and return the duration of each in seconds."""
    took = []
    for _ in range(10):
        began = time.perf_counter()
        assert Asked(writer, model, [{"x": 0.5}]).told.wait(30), "no answer"
        took.append(time.perf_counter() - began)
    return took


def _beside(writer: Writer, quick: Model, slow: Model, rng: np.random.Generator) -> list[float]:
    """Ten decisions of the fast model in sequence finish before a batch of two hundred of the slow one."""
    contexts = [dict(zip(NAMES, rng.random(200).tolist(), strict=True)) for _ in range(200)]
    long = Asked(writer, slow, contexts)
    took = _decide(writer, quick)
    assert not long.told.is_set(), "the slow model was waited for"
    assert long.told.wait(120), "no answer of the slow model"
    return took


def _while_read(writer: Writer, quick: Model) -> list[float]:
    """Decisions are made while ten readers wait for weights."""
    computing, goes_on, mean = threading.Event(), threading.Event(), Posterior.mean

    def held(self: Posterior, *given: Any) -> Any:
        computing.set()
        assert goes_on.wait(60)
        return mean(self, *given)

    with mock.patch.object(Posterior, "mean", held):
        readers = [threading.Thread(target=quick.weights) for _ in range(10)]
        quick._weights = None
        for reader in readers:
            reader.start()
        assert computing.wait(60), "nothing is computed"
        try:
            return _decide(writer, quick)
        finally:
            goes_on.set()
            for reader in readers:
                reader.join()
