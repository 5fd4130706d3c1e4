"""Erased decisions: no byte of their contexts, keys and features is left in the files, and the log is whole."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from attacks.stores import NOW, TABLES, model_of, play
from attacks.tally import Tally
from belated.decisions import SQLiteStore


def attack(tries: int, folder: Path, rng: np.random.Generator, tally: Tally) -> None:
    """Decide with contexts and keys that stand nowhere else, erase some or purge, and search the files."""
    for number in range(tries):
        if not tally.left():
            return
        path = folder / str(number) / "d.db"
        store = SQLiteStore(path, durable=False)
        model = model_of(store, list(TABLES)[number % len(TABLES)])
        play(model, int(rng.integers(20, 200)), rng)
        ids = [entry.id for entry in model.log()]
        some = [str(each) for each in rng.choice(ids, size=int(rng.integers(1, 10)), replace=False)]
        rows = [row for row in map(store.decision, some) if row is not None]
        traces = [trace for row in rows for trace in (row.context.encode(), row.features)]
        traces += [name.encode() for row in rows for name in (row.key, row.session) if name]
        traces = [trace for trace in traces if trace]
        live = number % 2 == 0
        erased = number % 4 > 0
        with tally.attempt(f"{len(some)} of {len(ids)} of {model.name}, {'erased' if erased else 'purged'}"):
            if erased:
                model.erase(some, keep_learned=bool(rng.integers(2)))
            else:
                for _ in range(2):  # sessions end, and then their windows
                    NOW[0] += 100.0
                    model.tick()
                model.purge(NOW[0])
            if not live:
                store.close()
            for each in path.parent.iterdir():
                left = [trace for trace in traces if trace in each.read_bytes()]
                assert not left, f"{each.name} still has {left[0]!r}"
            if live:
                play(model, 5, rng)
                assert model.verify() == []
        store.close()
