"""Models that share a service: a slow one, and those who read, keep no other waiting."""

from __future__ import annotations

import threading
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
    """Ask a quick model while a slow one has much to do, and while its weights are read."""
    store = SQLiteStore(folder / "d.db", durable=False)
    quick, slow = (Model(name, ModelSettings.from_table(each), store) for name, each in (("q", QUICK), ("s", SLOW)))
    writer = Writer(lambda: [quick, slow])
    try:
        for number in range(tries):
            if tally.left():
                with tally.attempt(f"{number}: beside a slow model"):
                    _beside(writer, quick, slow, rng)
                with tally.attempt(f"{number}: while weights are read"):
                    _while_read(writer, quick)
    finally:
        writer.close()
        store.close()


class Asked:
    """A request, and whether it was answered."""

    def __init__(self, writer: Writer, model: Model, contexts: list[dict[str, Any]]) -> None:
        self.told, self.answer = threading.Event(), None
        writer.submit(Request(model, [Decide(context) for context in contexts], self.done))

    def done(self, answer: Any) -> None:
        """Keep the answer."""
        self.answer = answer
        self.told.set()


def _beside(writer: Writer, quick: Model, slow: Model, rng: np.random.Generator) -> None:
    """Ten decisions of the quick model, one after the other, come before two hundred of the slow one together."""
    contexts = [dict(zip(NAMES, rng.random(200).tolist(), strict=True)) for _ in range(200)]
    long = Asked(writer, slow, contexts)
    for _ in range(10):
        assert Asked(writer, quick, [{"x": 0.5}]).told.wait(60), "no answer"
    assert not long.told.is_set(), "the slow model was waited for"
    assert long.told.wait(120), "no answer of the slow model"


def _while_read(writer: Writer, quick: Model) -> None:
    """Decisions are made while ten readers wait for weights that are being computed."""
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
            for _ in range(10):
                assert Asked(writer, quick, [{"x": 0.5}]).told.wait(5), "decisions wait for readers"
        finally:
            goes_on.set()
            for reader in readers:
                reader.join()
