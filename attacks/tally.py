"""What an attack counts: attempts that held, attempts that broke a promise, and why it stopped."""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field

SHOWN = 5
"""So many broken attempts of an attack are told in words."""


class NotBuiltError(Exception):
    """The behaviour that an attack is meant for does not exist here."""


@dataclass
class Tally:
    """The count of one attack."""

    seconds: float
    """An attack makes no further attempt after so long."""
    held: int = 0
    broken: int = 0
    details: list[str] = field(default_factory=list)
    """What broke, in words, at most SHOWN."""
    notes: list[str] = field(default_factory=list)
    """What else is to be known, such as that time ran out."""
    began: float = field(default_factory=time.monotonic)

    def left(self) -> bool:
        """Tell whether there is time for another attempt; note it if not."""
        if time.monotonic() - self.began < self.seconds:
            return True
        out = f"stopped after {self.seconds:.0f} s"
        if out not in self.notes:
            self.notes.append(out)
        return False

    @contextmanager
    def attempt(self, what: str) -> Iterator[None]:
        """Count what the block does: whatever it raises breaks the promise.

        `what` is printed first, so that it is known if the block takes the whole process with it.
        """
        print(f"try {what}", flush=True)
        try:
            yield
        except (KeyboardInterrupt, SystemExit, NotBuiltError):
            raise
        except BaseException as error:  # such as the panic of a parser, which is no Exception
            self.breaks(f"{what}: {type(error).__name__}: {' '.join(str(error).split())[:300]}")
        else:
            self.held += 1

    def breaks(self, detail: str) -> None:
        """Count a broken promise."""
        self.broken += 1
        if len(self.details) < SHOWN:
            self.details.append(detail)

    def tell(self) -> None:
        """Print the count for the program that started this one."""
        print(f"tally {json.dumps(asdict(self))}")
        sys.stdout.flush()
