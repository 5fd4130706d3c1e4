"""A second process on the file of a store, by whatever name: refused, and the first loses nothing."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np

from attacks.stores import model_of, play
from attacks.tally import Tally
from belated.decisions import SQLiteStore, StoreError

OPENED = """
import sys
from belated.decisions import SQLiteStore, StoreError
try:
    SQLiteStore(sys.argv[1])
except StoreError as error:
    print("refused:", error)
"""


def _symlink(path: Path) -> Path:
    other = path.with_name("symlink.db")
    other.symlink_to(path)
    return other


def _hard_link(path: Path) -> Path:
    other = path.with_name("hard.db")
    other.hardlink_to(path)
    return other


def _without_lock(path: Path) -> Path:
    for each in path.parent.glob("*lock*"):
        each.unlink()
    return path


def _folder(path: Path) -> Path:
    other = path.parent.with_name(path.parent.name + "-link")
    other.symlink_to(path.parent)
    return other / path.name


WAYS: dict[str, Callable[[Path], Path]] = {
    "symlink": _symlink, "hard link": _hard_link, "deleted lock": _without_lock, "linked folder": _folder,
}  # fmt: skip


def attack(tries: int, folder: Path, rng: np.random.Generator, tally: Tally) -> None:
    """Open a store that is in use in each way in turn, in this process and in another."""
    for number in range(tries):
        if not tally.left():
            return
        name = list(WAYS)[number % len(WAYS)]
        path = folder / str(number) / "d.db"
        with tally.attempt(name):
            store = SQLiteStore(path)
            model = model_of(store)
            ids = play(model, 10, rng)
            other = WAYS[name](path)
            try:
                SQLiteStore(other).close()
                raise AssertionError("opened twice in one process")
            except StoreError:
                pass
            command = [sys.executable, "-c", OPENED, str(other)]
            told = subprocess.run(command, capture_output=True, text=True, check=True)
            assert told.stdout.startswith("refused:"), "opened by a second process"
            ids += play(model, 10, rng)
            store.close()
            if other.name == "hard.db":
                other.unlink()
            store = SQLiteStore(path)
            again = model_of(store)
            assert again.verify() == [] and [entry.id for entry in again.log()] == ids
            store.close()
