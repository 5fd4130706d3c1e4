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
    """An attack: the promise, and the module whose function `attack` makes the attempts."""

    promise: str
    module: str

    def load(self) -> Attacking:
        """Return the function."""
        module: Any = import_module(f"attacks.{self.module}")
        return cast(Attacking, module.attack)


ATTACKS = {
    "flips": Attack("a damaged file is refused", "flips"),
    "memories": Attack("a crafted memory is refused or lived with", "memories"),
    "records": Attack("crafted rows and checkpoints are refused or lived with", "records"),
    "kills": Attack("a killed experiment resumes to the same bytes, without orphans", "kills"),
    "full-disk": Attack("a full disk loses nothing that was kept", "full_disk"),
    "nowhere-to-write": Attack("machine code is never stale, and not needed on disk", "nowhere"),
    "upgrade": Attack("rows of two versions do not mix", "upgrade"),
    "processors": Attack("strict results are the same on every CPU", "processors"),
    "fuzz": Attack("bad input ends in a sentence", "fuzz"),
    "commands": Attack("loading a file runs no command", "commands"),
    "numbers": Attack("no feedback makes an agent useless, none counts twice", "numbers"),
}


class Size(NamedTuple):
    """How many attempts each attack makes, and for how long at most."""

    total: float
    """Seconds after which no attack begins or makes another attempt."""
    seconds: float
    """Seconds of one attack."""
    tries: dict[str, int]


def _tries(*counts: int) -> dict[str, int]:
    return dict(zip(ATTACKS, counts, strict=True))


#: Attempts of: flips, memories, records, kills, full disk, nowhere, upgrade, processors, fuzz, commands, numbers.
SIZES = {
    "test": Size(60, 60, _tries(120, 40, 30, 1, 4, 1, 1, 0, 15, 300, 60)),
    "quick": Size(200, 90, _tries(1200, 150, 150, 8, 10, 1, 3, 0, 60, 600, 200)),
    "full": Size(540, 420, _tries(10_000, 2_000, 1_000, 60, 40, 3, 6, 2, 400, 6_000, 1_500)),
}
