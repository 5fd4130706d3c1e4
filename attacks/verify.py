"""Flipped bits in the file of a store: `verify` finds each, or the store is refused, or nothing has changed."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np

from attacks.flips import damage
from attacks.stores import TABLES, model_of, store_with_a_past
from attacks.tally import Tally
from belated.decisions import Model, SQLiteStore
from belated.decisions._snapshot import take
from belated.errors import BelatedError

NAMES = tuple(TABLES)


def attack(tries: int, folder: Path, rng: np.random.Generator, tally: Tally) -> None:
    """Damage the file of a store, and ask."""
    path, copy = folder / "d.db", folder / "damaged.db"
    store_with_a_past(path, rng)
    content, counts = path.read_bytes(), Counter[str]()
    held = known(path)
    for _ in range(tries):
        if not tally.left():
            break
        what, damaged = damage(content, rng)
        copy.write_bytes(damaged)
        with tally.attempt(what):
            outcome = verdict(copy)
            if outcome == "nothing found":
                assert known(copy) == held, "other content, without a word"
                outcome = "harmless"
            counts[outcome] += 1
    tally.notes.append(", ".join(f"{count} {name}" for name, count in sorted(counts.items())))


def verdict(path: Path) -> str:
    """Return what the check of a store comes to."""
    try:
        store = SQLiteStore(path, read_only=True)
    except BelatedError:
        return "refused"
    try:
        if any(store.check(name) or Model(name, None, store).recompute() for name in NAMES):
            return "found"
        return "nothing found"
    except BelatedError:
        return "refused"
    finally:
        store.close()


def known(path: Path) -> Any:
    """Return all that a store says."""
    store = SQLiteStore(path, read_only=True)
    try:
        models = [model_of(store, name) for name in NAMES]
        states = [take(model.state, 0.0) for model in models]
        past = [(store.all_forgotten(name), store.settings(name), store.snapshots(name)) for name in NAMES]
        return states, past, [list(model.log()) for model in models]
    finally:
        store.close()
