"""The thread that plans sessions: sets of plans are drawn in the background, and decisions never wait for them.

A model is planned again once its log has something that its latest set has not seen. The thread then rests for as long
as that took, so that planning takes at most half of one core, however much there is to learn: with few sessions, sets
are drawn many times a second; with many, they are a little older. Rows of the log are learned in Python, which holds
the GIL and blocks the threads that answer requests, so the thread rests after every millisecond of that.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Sequence

from belated.decisions import Model
from belated.errors import BelatedError

#: Rest after drawing a set, as a multiple of the time it took; its minimum in seconds; and seconds after a failure.
REST, LEAST, FAILED = 1.0, 0.2, 5.0
#: Seconds of CPU time after which a thread that learns rows rests for as long.
SPELL = 0.001
#: Seconds between two checks for something to plan.
PAUSE, NOBODY = 0.05, 0.5
#: Seconds that a set in progress gets when the service stops, and after which a slow set is reported as a problem.
CLOSING, LONG = 10.0, 60.0

_log = logging.getLogger(__name__)


class Rests:
    """Called repeatedly by a thread, limits it to half of the time, in short spells."""

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
    """Draws sets of plans for all models of sessions in turn."""

    def __init__(self, models: Callable[[], Sequence[Model]], failed: Callable[[str], None]) -> None:
        super().__init__(name="belated-planning", daemon=True)
        self._models, self._failed = models, failed
        self._stopping = threading.Event()
        self._next: dict[str, float] = {}
        self.troubles: dict[str, str] = {}
        """For each model, why its latest set could not be drawn."""
        self.took: dict[str, float] = {}
        """For each model, the seconds that its latest set took."""
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
        except Exception as error:  # sessions continue with the current set
            self.troubles[name] = str(error) if isinstance(error, BelatedError) else f"{type(error).__name__}: {error}"
            self._failed(name)
            least = FAILED
            _log.exception("drawing plans for %s failed", name)
        finally:
            self._began = None
            ended = time.monotonic()
            worked = ended - began - rests.taken
            self._next[name] = ended + max(least, REST * worked - rests.taken)  # minus the rests already taken

    def problem(self, model: str) -> str:
        """Return why a model is not being planned, as a sentence; empty if it is."""
        if model in self.troubles:
            return f"Sessions continue with old plans: {self.troubles[model]}"
        began = self._began
        age = time.monotonic() - began[1] if began is not None and began[0] == model else 0.0
        return f"Sessions continue with old plans: a set has taken {age:.0f} seconds so far." if age > LONG else ""

    def close(self) -> bool:
        """Stop; return whether the thread has ended."""
        self._stopping.set()
        self.join(CLOSING)
        return not self.is_alive()
