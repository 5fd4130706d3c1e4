"""The thread that plans sessions: sets of plans are drawn in the background, and decisions never wait for one.

A model is planned again once something of its sessions is known that its latest set has not seen. Then it rests for
as long as that took, so that planning takes no more than half of one core, however much there is to learn: with few
sessions sets are drawn many times a second, with many they are a little older. Rows of the log are learned in Python,
which keeps the interpreter from those who answer requests, so there it rests after every millisecond.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Sequence

from belated.decisions import Model
from belated.errors import BelatedError

#: How many times as long as a set took to draw its model rests; for how many seconds at least, and after a failure.
REST, LEAST, FAILED = 1.0, 0.2, 5.0
#: Seconds on the processor after which somebody who learns rows rests for as long.
SPELL = 0.001
#: Seconds between two looks, also if no model has sessions.
PAUSE, NOBODY = 0.05, 0.5
#: Seconds that what is under way has when the service stops, and after which it is a problem.
CLOSING, LONG = 10.0, 60.0

_log = logging.getLogger(__name__)


class Rests:
    """Called again and again by a thread, lets it work for half of the time at most, a spell at a time."""

    def __init__(self) -> None:
        self._worked = time.thread_time()
        self.taken = 0.0
        """Seconds of rest so far."""

    def __call__(self) -> None:
        spell = time.thread_time() - self._worked
        if spell >= SPELL:
            began = time.monotonic()
            time.sleep(spell)
            self.taken += time.monotonic() - began
            self._worked = time.thread_time()


class Planning(threading.Thread):
    """Draws sets of plans for all models of sessions, one after the other."""

    def __init__(self, models: Callable[[], Sequence[Model]], failed: Callable[[str], None]) -> None:
        super().__init__(name="belated-planning", daemon=True)
        self._models, self._failed = models, failed
        self._stopping = threading.Event()
        self._next: dict[str, float] = {}
        self.troubles: dict[str, str] = {}
        """Why the latest set of a model could not be drawn."""
        self.took: dict[str, float] = {}
        """Seconds that the latest set of a model took."""
        self._began: tuple[str, float] | None = None
        self.start()

    def run(self) -> None:
        models: list[Model] = []
        while not self._stopping.wait(PAUSE if models else NOBODY):
            models = [model for model in self._models() if model.has_sessions]
            for model in models:
                if not self._stopping.is_set() and time.monotonic() >= self._next.get(model.name, 0.0):
                    self._plan(model)

    def _plan(self, model: Model) -> None:
        name, began, least, rests = model.name, time.monotonic(), LEAST, Rests()
        self._began = name, began
        try:
            if model.plan_is_due():
                with model.store.alone(f"plan {name}") as alone:
                    if alone and model.plan_is_due():
                        model.plan(rests)
                        self.took[name] = time.monotonic() - began
            self.troubles.pop(name, None)
        except Exception as error:  # sessions go on with the set that there is
            self.troubles[name] = str(error) if isinstance(error, BelatedError) else f"{type(error).__name__}: {error}"
            self._failed(name)
            least = FAILED
            _log.exception("no plans could be drawn for %s", name)
        finally:
            self._began = None
            ended = time.monotonic()
            worked = ended - began - rests.taken
            self._next[name] = ended + max(least, REST * worked - rests.taken)  # those that it has taken count

    def problem(self, model: str) -> str:
        """Return what keeps a model from being planned, as a sentence; empty if nothing does."""
        if model in self.troubles:
            return f"Sessions go on with old plans: {self.troubles[model]}"
        began = self._began
        age = time.monotonic() - began[1] if began is not None and began[0] == model else 0.0
        return f"Sessions go on with old plans: a set has been under way for {age:.0f} seconds." if age > LONG else ""

    def close(self) -> bool:
        """Stop; tell whether nothing is under way any more."""
        self._stopping.set()
        self.join(CLOSING)
        return not self.is_alive()
