"""The attacks by name, what each is an attack on, and how many attempts each makes."""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import Any, NamedTuple, cast

import numpy as np

from attacks.tally import Tally

Attacking = Callable[[int, Path, np.random.Generator, Tally], None]
"""Makes about so many attempts in a folder of its own, at random, and counts them."""


class Attack(NamedTuple):
    """An attack: the promise, the module whose function `attack` makes the attempts, and how many."""

    promise: str
    module: str
    test: int
    quick: int
    full: int

    def load(self) -> Attacking:
        """Return the function."""
        module: Any = import_module(f"attacks.{self.module}")
        return cast(Attacking, module.attack)


ATTACKS = {
    "flips": Attack("a damaged file is refused", "flips", 120, 1_200, 10_000),
    "memories": Attack("a crafted memory is refused or lived with", "memories", 40, 150, 2_000),
    "records": Attack("crafted rows and checkpoints are refused or lived with", "records", 30, 150, 1_000),
    "kills": Attack("a killed experiment resumes to the same bytes, without orphans", "kills", 1, 8, 60),
    "full-disk": Attack("a full disk loses nothing that was kept", "full_disk", 4, 10, 40),
    "nowhere-to-write": Attack("machine code is never stale, and not needed on disk", "nowhere", 1, 1, 3),
    "upgrade": Attack("rows of two versions do not mix", "upgrade", 1, 3, 6),
    "processors": Attack("strict results are the same on every CPU", "processors", 0, 0, 2),
    "fuzz": Attack("bad input ends in a sentence", "fuzz", 15, 60, 400),
    "commands": Attack("loading a file runs no command", "commands", 60, 600, 6_000),
    "numbers": Attack("no feedback makes an agent useless, none counts twice", "numbers", 10, 200, 1_500),
    "undo": Attack("what is taken back leaves no trace, at any scale", "undo", 3, 100, 500),
    "greed": Attack("no request or model takes more than its share", "greed", 8, 16, 40),
    "clocks": Attack("a clock that is wrong is refused, and its log repaired", "clocks", 3, 30, 300),
    "after-commit": Attack("what is stored is learned once, whatever fails", "after_commit", 4, 60, 400),
    "stalls": Attack("a database that hangs is given up in time", "stalls", 0, 2, 6),
    "neighbours": Attack("models do not wait for one another", "neighbours", 1, 3, 10),
    "failover": Attack("a store restored to an older state takes nothing", "failover", 1, 10, 40),
    "starts": Attack("two services that start at once serve, or say why not", "starts", 1, 2, 8),
    "migrate": Attack("a model goes on under another encoding as if from the start", "migrate", 3, 20, 200),
    "twice": Attack("one process a SQLite store, by whatever name", "twice", 4, 8, 40),
    "verify": Attack("verify finds what is damaged", "verify", 10, 200, 1_000),
    "erase": Attack("what is erased leaves no bytes", "erase", 2, 30, 200),
    "pages": Attack("pages of other sites cannot use a service without keys", "pages", 5, 100, 500),
    "headers": Attack("callers without a key take neither memory nor connections", "headers", 1, 1, 3),
    "secrets": Attack("passwords, keys and files are their owner's", "secrets", 2, 100, 1_000),
    "intervals": Attack("an off-policy interval is given only where it covers", "intervals", 1, 20, 200),
}


class Size(NamedTuple):
    """How many attempts each attack makes, and for how long at most."""

    total: float
    """Seconds after which no attack begins or makes another attempt."""
    seconds: float
    """Seconds of one attack."""
    tries: dict[str, int]


SIZES = {
    "test": Size(60, 60, {name: attack.test for name, attack in ATTACKS.items()}),
    "quick": Size(600, 90, {name: attack.quick for name, attack in ATTACKS.items()}),
    "full": Size(3600, 420, {name: attack.full for name, attack in ATTACKS.items()}),
}
